/* Whole messages in and out of a ZeroMQ socket, one call each.

   A message has 20 to 40 frames, and a call from Python for every frame costs 20 times what libzmq needs for it.
   Sockets, options and life cycle stay pyzmq's: this only calls the libzmq that pyzmq has loaded, on the socket
   that pyzmq owns. All calls are non-blocking and keep the GIL. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdatomic.h>
#include <stddef.h>
#include <structmember.h>

/* One more whenever a call is added or changed: the Python side does not use an older build. */
enum { EDITION = 9 };

enum { DONTWAIT = 1, SNDMORE = 2 };

/* zmq_msg_t: 64 opaque bytes, by libzmq's stable ABI. */
typedef union {
    unsigned char opaque[64];
    void *alignment;
} frame_t;

static struct {
    int (*msg_init)(frame_t *);
    int (*msg_init_data)(frame_t *, void *, size_t, void (*)(void *, void *), void *);
    int (*msg_send)(frame_t *, void *, int);
    int (*msg_recv)(frame_t *, void *, int);
    int (*msg_close)(frame_t *);
    int (*msg_move)(frame_t *, frame_t *);
    int (*msg_more)(const frame_t *);
    void *(*msg_data)(frame_t *);
    size_t (*msg_size)(const frame_t *);
    int (*send)(void *, const void *, size_t, int);
    int (*error)(void);
} zmq;

static PyObject *closed_name, *underlying_name;

/* Messages are alike: a small frame that the message before had at the same place is given as the same object, which
   takes less than to make another, and to hash and compare it later on takes nothing. */
enum { SHARED_BYTES = 64, SHARED_FRAMES = 64, MOST_HOLES = 8 };

/* The parts of a message that a descriptor says the place of; the body is the last of them. */
enum { CALLBACKS, ROUTING, BODY, SECTIONS, ENVELOPE = 2 };

typedef struct {
    PyObject_HEAD
    PyObject *socket;
    PyObject *before[SHARED_FRAMES]; /* what was last at each place, or NULL */
    unsigned long owner;
    Py_ssize_t max_frames;
    Py_ssize_t max_bytes;
    Py_ssize_t holes[MOST_HOLES]; /* which frames are new in every message, counted from the end where negative */
    Py_ssize_t hole_count;
    Py_ssize_t descriptors[SECTIONS]; /* counted from the end; 0 where large frames are always copied */
    Py_ssize_t fixed;                 /* frames at the end that no section may reach into */
    unsigned long long oversized;
    unsigned long long unread; /* messages that were taken off the socket, and for which there was no memory */
    PyObject *offenders; /* the first frames of what was oversized, until somebody takes them out */
} Channel;

enum { MOST_OFFENDERS = 1000 };

/* The socket's pointer, or NULL with an exception: a closed socket's pointer is never used, nor another thread's. */
static void *
pointer_of(Channel *self)
{
    if (PyThread_get_thread_ident() != self->owner) {
        PyErr_SetString(PyExc_RuntimeError, "a channel belongs to the thread that made it");
        return NULL;
    }
    PyObject *closed = PyObject_GetAttr(self->socket, closed_name);
    if (closed == NULL)
        return NULL;
    int is_closed = PyObject_IsTrue(closed);
    Py_DECREF(closed);
    if (is_closed < 0)
        return NULL;
    PyObject *underlying = is_closed ? NULL : PyObject_GetAttr(self->socket, underlying_name);
    if (underlying == NULL) {
        if (is_closed) {
            errno = ENOTSOCK;
            PyErr_SetFromErrno(PyExc_OSError);
        }
        return NULL;
    }
    void *pointer = PyLong_AsVoidPtr(underlying);
    Py_DECREF(underlying);
    if (pointer == NULL && !PyErr_Occurred()) {
        errno = ENOTSOCK;
        PyErr_SetFromErrno(PyExc_OSError);
    }
    return pointer;
}

static PyObject *
raise_error(int number)
{
    errno = number;
    return PyErr_SetFromErrno(PyExc_OSError);
}

/* A signal is no reason to say that nothing is there: nobody would look again. */
static int
receive_frame(frame_t *frame, void *socket)
{
    int received;
    do {
        received = zmq.msg_recv(frame, socket, DONTWAIT);
    } while (received < 0 && zmq.error() == EINTR);
    return received;
}

/* A large frame is sent from where it is: a copy of a megabyte takes longer than all else that is done for a message.
   libzmq is done with it on a thread of its own, at any time, and must not wait for the GIL there. So it only puts the
   frame on a pile, and whoever sends or receives next lets go of what is on it. */
enum { LARGE_BYTES = 65536 };

typedef struct borrowed {
    PyObject *frame; /* bytes; NULL where it is a view of something else */
    Py_buffer view;
    struct borrowed *below;
} borrowed_t;

static _Atomic(borrowed_t *) pile;

/* The memory of a large frame goes back to the system with it, and getting it again for the next takes longer than
   copying it does. glibc keeps it only after it has once freed a block of 32 MB: from the first large frame on, it acts
   as if it had (bench/peers, 1 MB). Whoever has told it otherwise knows better. */
static void
keep_memory(void)
{
#ifdef __GLIBC__
    static int kept = 0;
    if (kept)
        return;
    kept = 1;
    if (getenv("GLIBC_TUNABLES") == NULL && getenv("MALLOC_MMAP_THRESHOLD_") == NULL
        && getenv("MALLOC_TRIM_THRESHOLD_") == NULL) {
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
        mallopt(M_TRIM_THRESHOLD, 64 << 20);
    }
#endif
}

static void
put_back(void *Py_UNUSED(data), void *hint)
{
    borrowed_t *top = hint;
    top->below = atomic_load(&pile);
    while (!atomic_compare_exchange_weak(&pile, &top->below, top))
        ;
}

static void
let_go(void)
{
    borrowed_t *top = atomic_load(&pile) == NULL ? NULL : atomic_exchange(&pile, NULL);
    while (top != NULL) {
        borrowed_t *below = top->below;
        if (top->frame == NULL)
            PyBuffer_Release(&top->view);
        else
            Py_DECREF(top->frame);
        PyMem_RawFree(top);
        top = below;
    }
}

/* A frame as libzmq received it: what a large frame of a body of several is a view of, so that it is never copied. */
typedef struct {
    PyObject_HEAD
    frame_t frame;
} Received;

static int
received_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    frame_t *frame = &((Received *)self)->frame;
    return PyBuffer_FillInfo(view, self, zmq.msg_data(frame), (Py_ssize_t)zmq.msg_size(frame), 1, flags);
}

static void
received_dealloc(PyObject *self)
{
    zmq.msg_close(&((Received *)self)->frame);
    Py_TYPE(self)->tp_free(self);
}

static PyBufferProcs received_buffer = {.bf_getbuffer = received_getbuffer};

static PyTypeObject received_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framewire.cluster._zmqio.Received",
    .tp_doc = "A frame as libzmq received it.",
    .tp_basicsize = sizeof(Received),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = received_dealloc,
    .tp_as_buffer = &received_buffer,
};

/* Takes over what is in a frame, which is empty then. */
static PyObject *
received_from(frame_t *frame)
{
    Received *made = PyObject_New(Received, &received_type);
    if (made == NULL)
        return NULL;
    zmq.msg_init(&made->frame);
    zmq.msg_move(&made->frame, frame);
    keep_memory();
    return (PyObject *)made;
}

typedef enum { MESSAGE, NOTHING, OVERSIZED, FAILED } received_t;

static PyObject *
bytes_of(Channel *self, Py_ssize_t index, const char *data, Py_ssize_t size)
{
    if (size >= LARGE_BYTES)
        keep_memory();
    if (size > SHARED_BYTES || index >= SHARED_FRAMES)
        return PyBytes_FromStringAndSize(data, size);
    PyObject *before = self->before[index];
    if (before != NULL && PyBytes_GET_SIZE(before) == size && memcmp(PyBytes_AS_STRING(before), data, (size_t)size) == 0)
        return Py_NewRef(before);
    PyObject *made = PyBytes_FromStringAndSize(data, size);
    Py_XSETREF(self->before[index], Py_XNewRef(made));
    return made;
}

/* The frames of a message while they come in: most have few enough for a list of just the right length. */
typedef struct {
    PyObject *few[SHARED_FRAMES];
    PyObject *many; /* all of them, where there are more */
    Py_ssize_t count;
} parts_t;

static PyObject *
listed(parts_t *parts)
{
    if (parts->many != NULL)
        return parts->many;
    PyObject *frames = PyList_New(parts->count);
    for (Py_ssize_t i = 0; i < parts->count; i++) {
        if (frames == NULL)
            Py_DECREF(parts->few[i]);
        else
            PyList_SET_ITEM(frames, i, parts->few[i]);
    }
    return frames;
}

/* Takes the frame over, whatever happens; all that came before it stays to be listed, or thrown away by doing so. */
static int
put(parts_t *parts, PyObject *part)
{
    if (part == NULL)
        return -1;
    if (parts->count < SHARED_FRAMES) {
        parts->few[parts->count++] = part;
        return 0;
    }
    if (parts->many == NULL && (parts->many = listed(parts)) == NULL) {
        parts->count = 0;
        Py_DECREF(part);
        return -1;
    }
    int failed = PyList_Append(parts->many, part);
    Py_DECREF(part);
    parts->count += failed == 0;
    return failed;
}

/* Which frames are those of a body of several, or none: *first == *end. None also where another part reaches into the
   body: all else in a message is bytes. */
static void
find_body(const Channel *self, PyObject *frames, Py_ssize_t *first, Py_ssize_t *end)
{
    Py_ssize_t count = PyList_GET_SIZE(frames), highest = self->fixed, offset = 0, entries = 0;
    *first = *end = 0;
    for (int section = 0; section < SECTIONS; section++) {
        Py_ssize_t at = count + self->descriptors[section];
        PyObject *frame = at < 0 || at >= count ? NULL : PyList_GET_ITEM(frames, at);
        if (frame == NULL || !PyBytes_Check(frame) || PyBytes_GET_SIZE(frame) != 8)
            return;
        const unsigned char *raw = (const unsigned char *)PyBytes_AS_STRING(frame);
        offset = raw[0] | raw[1] << 8;
        entries = raw[2] | raw[3] << 8;
        if (section != BODY && entries > 0) {
            Py_ssize_t top = offset + entries * (raw[4] | raw[5] << 8) - 1;
            highest = top > highest ? top : highest;
        }
    }
    if (entries < 2 || offset <= highest || offset + entries - 1 > count - ENVELOPE)
        return;
    *first = count - (offset + entries - 1);
    *end = count - offset + 1;
}

/* Makes of the large frames what they are for others: views for a body of several, and bytes. */
static int
settle(const Channel *self, PyObject *frames)
{
    Py_ssize_t first, end;
    find_body(self, frames, &first, &end);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(frames); i++) {
        PyObject *frame = PyList_GET_ITEM(frames, i), *made;
        if (!Py_IS_TYPE(frame, &received_type))
            continue;
        frame_t *held = &((Received *)frame)->frame;
        if (i >= first && i < end)
            made = PyMemoryView_FromObject(frame);
        else
            made = PyBytes_FromStringAndSize(zmq.msg_data(held), (Py_ssize_t)zmq.msg_size(held));
        if (made == NULL)
            return -1;
        PyList_SetItem(frames, i, made); /* lets go of the other */
    }
    return 0;
}

/* One message. Whatever goes wrong, all of its frames are taken off the socket, so that the next call starts with
   the next message. */
static received_t
receive_one(Channel *self, void *socket, PyObject **message)
{
    frame_t frame;
    zmq.msg_init(&frame);
    if (receive_frame(&frame, socket) < 0) {
        int number = zmq.error();
        zmq.msg_close(&frame);
        if (number == EAGAIN)
            return NOTHING;
        raise_error(number);
        return FAILED;
    }
    parts_t parts;
    parts.many = NULL;
    parts.count = 0;
    received_t outcome = MESSAGE;
    Py_ssize_t bytes = 0, large = 0;
    for (;;) {
        size_t size = zmq.msg_size(&frame);
        int more = zmq.msg_more(&frame);
        if (outcome == MESSAGE) {
            if (parts.count >= self->max_frames || size > (size_t)(self->max_bytes - bytes)) {
                outcome = OVERSIZED;
            }
            else {
                bytes += (Py_ssize_t)size;
                int is_large = size >= LARGE_BYTES && parts.count >= ENVELOPE && self->fixed > 0;
                large += is_large;
                PyObject *part = is_large ? received_from(&frame)
                                          : bytes_of(self, parts.count, zmq.msg_data(&frame), (Py_ssize_t)size);
                if (put(&parts, part) < 0)
                    outcome = FAILED;
            }
        }
        if (!more)
            break;
        if (receive_frame(&frame, socket) < 0) { /* the rest of a message is always there, unless the context is going down */
            if (outcome != FAILED)
                raise_error(zmq.error());
            outcome = FAILED;
            break;
        }
    }
    zmq.msg_close(&frame);
    PyObject *error_type, *error, *traceback;
    PyErr_Fetch(&error_type, &error, &traceback);
    PyObject *frames = listed(&parts);
    if (frames == NULL || (large > 0 && outcome == MESSAGE && settle(self, frames) < 0))
        outcome = FAILED;
    if (error_type != NULL)
        PyErr_Restore(error_type, error, traceback);
    if (outcome == OVERSIZED && PyList_GET_SIZE(frames) > 0 && PyList_GET_SIZE(self->offenders) < MOST_OFFENDERS
        && PyList_Append(self->offenders, PyList_GET_ITEM(frames, 0)) < 0)
        outcome = FAILED;
    if (outcome == MESSAGE)
        *message = frames;
    else
        Py_XDECREF(frames);
    return outcome;
}

static int
is_hole(const Channel *self, Py_ssize_t index, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < self->hole_count; i++)
        if (self->holes[i] == index || self->holes[i] == index - count)
            return 1;
    return 0;
}

/* Whether two messages are the same but for what is new in every message. Most of their frames are the same objects. */
static int
alike(const Channel *self, PyObject *one, PyObject *other)
{
    Py_ssize_t count = PyList_GET_SIZE(one);
    if (count != PyList_GET_SIZE(other))
        return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *here = PyList_GET_ITEM(one, i), *there = PyList_GET_ITEM(other, i);
        if (here == there || is_hole(self, i, count))
            continue;
        if (!PyBytes_Check(here) || !PyBytes_Check(there)) /* a body of several frames: each is read by itself */
            return 0;
        Py_ssize_t size = PyBytes_GET_SIZE(here);
        if (size != PyBytes_GET_SIZE(there) || memcmp(PyBytes_AS_STRING(here), PyBytes_AS_STRING(there), (size_t)size) != 0)
            return 0;
    }
    return 1;
}

/* Put a message where it belongs: with those before it where it is like them, and else on its own. */
static int
line_up(const Channel *self, PyObject *runs, PyObject *message)
{
    Py_ssize_t count = PyList_GET_SIZE(runs);
    PyObject *run = count == 0 ? NULL : PyList_GET_ITEM(runs, count - 1);
    if (run != NULL && alike(self, PyList_GET_ITEM(run, 0), message))
        return PyList_Append(run, message);
    run = PyList_New(1);
    if (run == NULL)
        return -1;
    PyList_SET_ITEM(run, 0, Py_NewRef(message));
    int failed = PyList_Append(runs, run);
    Py_DECREF(run);
    return failed;
}

static PyObject *
receive(Channel *self, PyObject *argument, int in_runs)
{
    Py_ssize_t limit = PyLong_AsSsize_t(argument);
    if (limit == -1 && PyErr_Occurred())
        return NULL;
    void *socket = pointer_of(self);
    if (socket == NULL)
        return NULL;
    let_go();
    PyObject *messages = PyList_New(0);
    if (messages == NULL)
        return NULL;
    for (Py_ssize_t taken = 0; taken < limit; taken++) {
        PyObject *message = NULL;
        received_t outcome = receive_one(self, socket, &message);
        if (outcome == NOTHING)
            break;
        if (outcome == OVERSIZED) {
            self->oversized++;
            continue;
        }
        if (outcome == FAILED || (in_runs ? line_up(self, messages, message) : PyList_Append(messages, message)) < 0) {
            Py_XDECREF(message);
            if (PyErr_ExceptionMatches(PyExc_MemoryError)) { /* those before it count, and those after it may be smaller */
                PyErr_Clear();
                self->unread++;
                continue;
            }
            if (PyList_GET_SIZE(messages) > 0 && PyErr_ExceptionMatches(PyExc_OSError)) {
                PyErr_Clear(); /* what was received counts; the error will come again */
                break;
            }
            Py_DECREF(messages);
            return NULL;
        }
        Py_DECREF(message);
    }
    return messages;
}

static PyObject *
channel_receive(Channel *self, PyObject *argument)
{
    return receive(self, argument, 0);
}

static PyObject *
channel_receive_runs(Channel *self, PyObject *argument)
{
    return receive(self, argument, 1);
}

/* A frame that is to be sent: bytes, or a view of something else that is let go of by whoever has it. */
typedef struct {
    PyObject *bytes; /* NULL for a view */
    Py_buffer view;
} outgoing_t;

/* Opens a frame; -1 with an exception where it is none. */
static int
open_frame(PyObject *item, Py_ssize_t index, outgoing_t *opened)
{
    if (PyBytes_Check(item)) {
        opened->bytes = item;
        return 0;
    }
    opened->bytes = NULL;
    if (!PyMemoryView_Check(item)) {
        PyErr_Format(PyExc_TypeError, "frame %zd is %s, not bytes", index, Py_TYPE(item)->tp_name);
        return -1;
    }
    return PyObject_GetBuffer(item, &opened->view, PyBUF_SIMPLE);
}

static Py_ssize_t
size_of(const outgoing_t *opened)
{
    return opened->bytes == NULL ? opened->view.len : PyBytes_GET_SIZE(opened->bytes);
}

static void
close_frame(outgoing_t *opened)
{
    if (opened->bytes == NULL)
        PyBuffer_Release(&opened->view);
}

/* Takes the opened frame over, whatever happens. */
static int
send_frame(void *socket, outgoing_t *opened, int flags)
{
    size_t size = (size_t)size_of(opened);
    void *data = opened->bytes == NULL ? opened->view.buf : PyBytes_AS_STRING(opened->bytes);
    borrowed_t *borrowed = size < LARGE_BYTES ? NULL : PyMem_RawMalloc(sizeof *borrowed);
    int sent;
    if (borrowed == NULL) {
        do {
            sent = zmq.send(socket, data, size, flags);
        } while (sent < 0 && zmq.error() == EINTR);
        int number = sent < 0 ? zmq.error() : 0;
        close_frame(opened);
        if (sent < 0)
            errno = number;
        return sent;
    }
    keep_memory();
    borrowed->frame = Py_XNewRef(opened->bytes);
    if (opened->bytes == NULL)
        borrowed->view = opened->view;
    frame_t frame;
    if (zmq.msg_init_data(&frame, data, size, put_back, borrowed) < 0) {
        put_back(NULL, borrowed);
        return -1;
    }
    do {
        sent = zmq.msg_send(&frame, socket, flags);
    } while (sent < 0 && zmq.error() == EINTR);
    if (sent < 0) {
        int number = zmq.error();
        zmq.msg_close(&frame);
        errno = number;
    }
    return sent;
}

typedef enum { SENT, FULL, REFUSED } sent_t;

/* One message, whole or not at all. One that is too large is not even begun: its receiver would close the
   connection on it, and lose what else is on its way there. */
static sent_t
send_one(Channel *self, void *socket, PyObject *argument)
{
    PyObject *frames = PySequence_Fast(argument, "frames must be a list of bytes");
    if (frames == NULL)
        return REFUSED;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(frames);
    PyObject **items = PySequence_Fast_ITEMS(frames);
    sent_t outcome = REFUSED;
    let_go();
    if (count == 0) {
        PyErr_SetString(PyExc_ValueError, "a message has at least one frame");
        goto done;
    }
    Py_ssize_t room = self->max_bytes;
    for (Py_ssize_t i = 0; i < count; i++) {
        outgoing_t opened;
        if (open_frame(items[i], i, &opened) < 0)
            goto done;
        Py_ssize_t size = size_of(&opened);
        close_frame(&opened);
        room = size > room ? -1 : room - size;
        if (room < 0 || i >= self->max_frames) {
            raise_error(EMSGSIZE);
            goto done;
        }
    }
    outcome = SENT;
    for (Py_ssize_t i = 0; i < count; i++) {
        int flags = DONTWAIT | (i + 1 < count ? SNDMORE : 0);
        outgoing_t opened;
        if (open_frame(items[i], i, &opened) < 0) { /* it was open a moment ago, and no Python has run */
            PyErr_Clear();
            PyErr_SetString(PyExc_SystemError, "a frame was closed while its message was sent");
            outcome = REFUSED;
            goto done;
        }
        if (send_frame(socket, &opened, flags) >= 0)
            continue;
        int number = zmq.error();
        if (number != EAGAIN) {
            raise_error(number);
            outcome = REFUSED;
            goto done;
        }
        outcome = FULL;
        if (i == 0)
            goto done;
        /* The connection went in the middle: libzmq drops the message, but wants its end. */
    }
done:
    Py_DECREF(frames);
    return outcome;
}

static PyObject *
channel_send(Channel *self, PyObject *argument)
{
    void *socket = pointer_of(self);
    if (socket == NULL)
        return NULL;
    sent_t outcome = send_one(self, socket, argument);
    return outcome == REFUSED ? NULL : PyBool_FromLong(outcome == SENT);
}

static PyObject *
channel_send_many(Channel *self, PyObject *argument)
{
    void *socket = pointer_of(self);
    if (socket == NULL)
        return NULL;
    PyObject *messages = PySequence_Fast(argument, "messages must be a list of lists of bytes");
    if (messages == NULL)
        return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(messages);
    Py_ssize_t sent = 0;
    while (sent < count) {
        sent_t outcome = send_one(self, socket, PySequence_Fast_GET_ITEM(messages, sent));
        if (outcome == REFUSED) {
            if (sent > 0 && PyErr_ExceptionMatches(PyExc_OSError)) {
                PyErr_Clear(); /* what was sent counts; the error will come again */
                break;
            }
            Py_DECREF(messages);
            return NULL;
        }
        if (outcome == FULL)
            break;
        sent++;
    }
    Py_DECREF(messages);
    return PyLong_FromSsize_t(sent);
}

static int
channel_init(Channel *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"socket", "max_frames", "max_bytes", "holes", "descriptors", "fixed", NULL};
    PyObject *socket, *holes = NULL;
    Py_ssize_t max_frames, max_bytes, *at = self->descriptors;
    at[CALLBACKS] = at[ROUTING] = at[BODY] = self->fixed = 0;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "Onn|O!(nnn)n", names, &socket, &max_frames, &max_bytes, &PyTuple_Type, &holes, &at[CALLBACKS],
            &at[ROUTING], &at[BODY], &self->fixed
        ))
        return -1;
    if (zmq.send == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "load() has not been called");
        return -1;
    }
    if (max_frames < 1 || max_bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "max_frames must be at least 1 and max_bytes not negative");
        return -1;
    }
    Py_ssize_t hole_count = holes == NULL ? 0 : PyTuple_GET_SIZE(holes);
    if (hole_count > MOST_HOLES) {
        PyErr_Format(PyExc_ValueError, "at most %d holes", MOST_HOLES);
        return -1;
    }
    for (Py_ssize_t i = 0; i < hole_count; i++) {
        self->holes[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(holes, i));
        if (self->holes[i] == -1 && PyErr_Occurred())
            return -1;
    }
    self->hole_count = hole_count;
    PyObject *offenders = PyList_New(0);
    if (offenders == NULL)
        return -1;
    Py_XSETREF(self->offenders, offenders);
    Py_XSETREF(self->socket, Py_NewRef(socket));
    self->owner = PyThread_get_thread_ident();
    self->max_frames = max_frames;
    self->max_bytes = max_bytes;
    self->oversized = 0;
    self->unread = 0;
    return 0;
}

static int
channel_traverse(Channel *self, visitproc visit, void *arg)
{
    Py_VISIT(self->socket);
    Py_VISIT(self->offenders);
    return 0;
}

static int
channel_clear(Channel *self)
{
    Py_CLEAR(self->socket);
    Py_CLEAR(self->offenders);
    return 0;
}

static void
channel_dealloc(Channel *self)
{
    PyObject_GC_UnTrack(self);
    channel_clear(self);
    for (int i = 0; i < SHARED_FRAMES; i++)
        Py_CLEAR(self->before[i]);
    let_go();
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef channel_methods[] = {
    {"receive", (PyCFunction)channel_receive, METH_O, "Up to so many whole messages that are there now."},
    {"receive_runs", (PyCFunction)channel_receive_runs, METH_O, "The same, those that are alike together in their order."},
    {"send", (PyCFunction)channel_send, METH_O, "Send a whole message; False where there is no room for it."},
    {"send_many", (PyCFunction)channel_send_many, METH_O, "Send messages in order; how many went before there was no room."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef channel_members[] = {
    {"oversized", T_ULONGLONG, offsetof(Channel, oversized), READONLY, "Messages dropped for their size."},
    {"unread", T_ULONGLONG, offsetof(Channel, unread), READONLY, "Messages dropped for lack of memory."},
    {"offenders", T_OBJECT_EX, offsetof(Channel, offenders), READONLY, "The first frame of each of them, to be taken out."},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject channel_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framewire.cluster._zmqio.Channel",
    .tp_doc = "A pyzmq socket, for whole messages.",
    .tp_basicsize = sizeof(Channel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)channel_init,
    .tp_dealloc = (destructor)channel_dealloc,
    .tp_traverse = (traverseproc)channel_traverse,
    .tp_clear = (inquiry)channel_clear,
    .tp_methods = channel_methods,
    .tp_members = channel_members,
};

/* dlsym gives an object pointer; POSIX lets it stand for a function, ISO C needs this detour. */
#define FIND(slot, name)                                                              \
    do {                                                                              \
        void *found = dlsym(library, name);                                           \
        if (found == NULL) {                                                          \
            PyErr_SetString(PyExc_OSError, name " is not in that library");           \
            return NULL;                                                              \
        }                                                                             \
        *(void **)(&zmq.slot) = found;                                                \
    } while (0)

static PyObject *
load(PyObject *Py_UNUSED(module), PyObject *argument)
{
    PyObject *path;
    if (!PyUnicode_FSConverter(argument, &path))
        return NULL;
    /* Already loaded by pyzmq, and with it the libzmq that it is linked to: this only finds it again. */
    void *library = dlopen(PyBytes_AS_STRING(path), RTLD_NOW | RTLD_NOLOAD);
    Py_DECREF(path);
    if (library == NULL) {
        PyErr_SetString(PyExc_OSError, "that library is not loaded");
        return NULL;
    }
    FIND(msg_init, "zmq_msg_init");
    FIND(msg_init_data, "zmq_msg_init_data");
    FIND(msg_send, "zmq_msg_send");
    FIND(msg_recv, "zmq_msg_recv");
    FIND(msg_close, "zmq_msg_close");
    FIND(msg_move, "zmq_msg_move");
    FIND(msg_more, "zmq_msg_more");
    FIND(msg_data, "zmq_msg_data");
    FIND(msg_size, "zmq_msg_size");
    FIND(error, "zmq_errno");
    FIND(send, "zmq_send"); /* last: Channel takes it as the sign that all are there */
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"load", load, METH_O, "Find libzmq through the extension module of pyzmq, given its path."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "framewire.cluster._zmqio",
    .m_doc = "Whole messages in and out of a ZeroMQ socket.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__zmqio(void)
{
    closed_name = PyUnicode_InternFromString("closed");
    underlying_name = PyUnicode_InternFromString("underlying");
    if (closed_name == NULL || underlying_name == NULL || PyType_Ready(&channel_type) < 0
        || PyType_Ready(&received_type) < 0)
        return NULL;
    PyObject *created = PyModule_Create(&module);
    if (created == NULL || PyModule_AddObjectRef(created, "Channel", (PyObject *)&channel_type) < 0 ||
        PyModule_AddIntConstant(created, "EDITION", EDITION) < 0) {
        Py_XDECREF(created);
        return NULL;
    }
    return created;
}
