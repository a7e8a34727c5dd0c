/* libzmq itself with the frames of a V5 message, in C: what no program that sends them can beat.
 *
 *     libzmq serve                    prints its address, and answers until it is ended
 *     libzmq ask|asks|tells ADDRESS COUNT OUTSTANDING BODY-BYTES < frames
 *
 * Frames come as lines "SIZE\n" + bytes on standard input; the one of size BODY is replaced by a body of that size.
 * It prints the nanoseconds that all of it took, or of each ask.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#define MOST 64
#define BODY 2 /* of a client; a ROUTER has the identity before it */

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *opened(void *context, int type) {
    int most = 200000;
    void *socket = zmq_socket(context, type);
    assert(socket);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &most, sizeof most);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &most, sizeof most);
    return socket;
}

static int received(void *socket, zmq_msg_t *frames) {
    int count = 0, more = 1;
    while (more) {
        assert(count < MOST);
        zmq_msg_init(&frames[count]);
        if (zmq_msg_recv(&frames[count], socket, 0) < 0) exit(0);
        more = zmq_msg_more(&frames[count++]);
    }
    return count;
}

static void serve(void *context) {
    void *socket = opened(context, ZMQ_ROUTER);
    zmq_msg_t frames[MOST];
    char address[256];
    size_t size = sizeof address;
    assert(zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
    zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, address, &size);
    printf("%s\n", address);
    fflush(stdout);
    for (;;) {
        int count = received(socket, frames);
        int note = count > BODY + 1 && *(char *)zmq_msg_data(&frames[BODY + 1]) == 'n';
        for (int i = 0; i < count; i++)
            if (note)
                zmq_msg_close(&frames[i]);
            else
                zmq_msg_send(&frames[i], socket, i + 1 < count ? ZMQ_SNDMORE : 0);
    }
}

static char *data[MOST];
static size_t sizes[MOST];
static int total;

static void send_one(void *socket) {
    for (int i = 0; i < total; i++) zmq_send(socket, data[i], sizes[i], i + 1 < total ? ZMQ_SNDMORE : 0);
}

static void receive_one(void *socket) {
    zmq_msg_t frames[MOST];
    int count = received(socket, frames);
    for (int i = 0; i < count; i++) zmq_msg_close(&frames[i]);
}

int main(int argc, char **argv) {
    void *context = zmq_ctx_new();
    if (argc == 2 && !strcmp(argv[1], "serve")) serve(context);
    if (argc != 6) return 2;
    long count = atol(argv[3]), open = atol(argv[4]), size = atol(argv[5]);
    while (total < MOST && scanf("%zu", &sizes[total]) == 1) {
        getchar();
        data[total] = malloc(sizes[total] + 1);
        if (fread(data[total], 1, sizes[total], stdin) != sizes[total]) return 3;
        total++;
    }
    int note = !strcmp(argv[1], "tells");
    data[BODY] = memset(malloc(size), note ? 'n' : 'q', size);
    sizes[BODY] = size;
    void *socket = opened(context, ZMQ_DEALER);
    assert(zmq_connect(socket, argv[2]) == 0);
    int64_t began = now();
    if (!strcmp(argv[1], "ask")) {
        for (long i = 0; i < count; i++) {
            int64_t before = now();
            send_one(socket);
            receive_one(socket);
            printf("%" PRId64 "\n", now() - before);
        }
        return 0;
    }
    if (note) {
        for (long i = 0; i < count; i++) send_one(socket);
        *data[BODY] = 'q';
        send_one(socket); /* comes after them, for order is kept */
        receive_one(socket);
    } else {
        if (open > count) open = count;
        for (long i = 0; i < open; i++) send_one(socket);
        for (long i = open; i < count; i++) { receive_one(socket); send_one(socket); }
        for (long i = 0; i < open; i++) receive_one(socket);
    }
    printf("%" PRId64 "\n", now() - began);
    return 0;
}
