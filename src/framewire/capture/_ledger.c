/* Recorded messages as Arrow's buffers, from the call that records them on.

   A message has about 30 frames. To keep them as Python objects, and to make a column of them later with the interpreter
   in hand, takes five times as long as to copy their few hundred bytes to where they belong at once. Only reasons, which
   hardly any message has, stay objects.

   It relies on the GIL: the event loop records, another thread takes. No Python runs while a row is added. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <stdint.h>
#include <structmember.h>
#include <time.h>

enum { EDITION = 3 }; /* one more whenever a call changes: the Python side does not use another build */
enum { RECORD_WEIGHT = 120, FRAME_WEIGHT = 4, FEWEST_BYTES = 1024, MOST_SPARE_BYTES = 16 * 1024 * 1024 };
/* The buffers of a block. Each of the last three is of contents, behind one of where they end. */
enum { TIMES, ENDS, FRAME_ENDS, FRAMES, DIRECTION_ENDS, DIRECTIONS, PEER_ENDS, PEERS, BUFFERS };
enum { REASONS = BUFFERS, ROWS, PARTS };

typedef struct {
    PyObject_HEAD
    PyObject *admit, *refuse;
    PyObject *buffers[BUFFERS]; /* what was recorded: bytearrays with room at their end */
    Py_ssize_t used[BUFFERS];
    PyObject *reasons; /* a list: the row and the reason, of those that have one */
    Py_ssize_t rows;
    long long put, mark;
} Ledger;

static int
reserve(Ledger *self, int which, Py_ssize_t size)
{
    PyObject *buffer = self->buffers[which];
    Py_ssize_t need = self->used[which] + size, room = PyByteArray_GET_SIZE(buffer);
    return need <= room ? 0 : PyByteArray_Resize(buffer, need < 2 * room ? 2 * room : need);
}

static void
extend(Ledger *self, int which, const void *content, Py_ssize_t size)
{
    memcpy(PyByteArray_AS_STRING(self->buffers[which]) + self->used[which], content, (size_t)size);
    self->used[which] += size;
}

/* Contents, and in the buffer before them where they end. */
static void
extend_text(Ledger *self, int which, const void *content, Py_ssize_t size)
{
    extend(self, which, content, size);
    int32_t end = (int32_t)self->used[which];
    extend(self, which - 1, &end, sizeof end);
}

/* A buffer of an older block where nobody reads it any more, or a new one: new memory costs as much as what is put there. */
static PyObject *
buffer_from(PyObject *spare, Py_ssize_t which)
{
    PyObject *old = PyTuple_Check(spare) && which < PyTuple_GET_SIZE(spare) ? PyTuple_GET_ITEM(spare, which) : Py_None;
    int again = PyByteArray_CheckExact(old) && ((PyByteArrayObject *)old)->ob_exports == 0
                && PyByteArray_GET_SIZE(old) >= FEWEST_BYTES && PyByteArray_GET_SIZE(old) <= MOST_SPARE_BYTES;
    return again ? Py_NewRef(old) : PyByteArray_FromStringAndSize(NULL, FEWEST_BYTES);
}

/* The block as a tuple; the next one is begun. Arrow's offsets begin with a 0. */
static PyObject *
cut_off(Ledger *self, PyObject *spare)
{
    PyObject *block = PyTuple_New(PARTS), *reasons = PyList_New(0), *rows = PyLong_FromSsize_t(self->rows);
    int failed = block == NULL || reasons == NULL || rows == NULL;
    for (int i = 0; !failed && i < BUFFERS; i++) {
        PyTuple_SET_ITEM(block, i, buffer_from(spare, i));
        failed = PyTuple_GET_ITEM(block, i) == NULL;
    }
    if (failed) {
        Py_XDECREF(block);
        Py_XDECREF(reasons);
        Py_XDECREF(rows);
        return NULL;
    }
    for (int i = 0; i < BUFFERS; i++) {
        PyObject *next = PyTuple_GET_ITEM(block, i);
        PyTuple_SET_ITEM(block, i, self->buffers[i]);
        self->buffers[i] = next;
        self->used[i] = 0;
    }
    PyTuple_SET_ITEM(block, REASONS, self->reasons);
    PyTuple_SET_ITEM(block, ROWS, rows);
    self->reasons = reasons;
    self->rows = 0;
    static const int offsets[] = {ENDS, FRAME_ENDS, DIRECTION_ENDS, PEER_ENDS};
    const int32_t zero = 0;
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        extend(self, offsets[i], &zero, sizeof zero);
    return block;
}

/* The content of a frame, bytes or a view of them; -1 where it is something else. A view is let go of by ``close_frame``. */
static int
open_frame(PyObject *frame, Py_buffer *view)
{
    if (PyBytes_Check(frame)) {
        view->obj = NULL;
        view->buf = PyBytes_AS_STRING(frame);
        view->len = PyBytes_GET_SIZE(frame);
        return 0;
    }
    if (PyMemoryView_Check(frame) && PyObject_GetBuffer(frame, view, PyBUF_SIMPLE) == 0)
        return 0;
    PyErr_Clear();
    return -1;
}

static void
close_frame(Py_buffer *view)
{
    if (view->obj != NULL)
        PyBuffer_Release(view);
}

/* How many bytes there are in frames; -1 where something else is among them, or an offset would be too large. */
static Py_ssize_t
size_of(const Ledger *self, PyObject *frames)
{
    Py_ssize_t size = 0, count = PySequence_Fast_GET_SIZE(frames), width = sizeof(int32_t);
    PyObject **items = PySequence_Fast_ITEMS(frames);
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_buffer view;
        if (open_frame(items[i], &view) < 0)
            return -1;
        size += view.len;
        close_frame(&view);
    }
    int fits = self->used[FRAMES] + size <= INT32_MAX && self->used[FRAME_ENDS] + count * width <= INT32_MAX;
    return fits ? size : -1;
}

/* What a row has besides its frames. */
typedef struct {
    const char *direction, *peer;
    Py_ssize_t direction_size, peer_size;
    PyObject *reason; /* may be None */
    int64_t at;       /* microseconds */
} Row;

/* Text as UTF-8; NULL where it is none, as half a surrogate pair. */
static const char *
utf8(PyObject *text, Py_ssize_t *size)
{
    const char *content = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, size) : NULL;
    if (content == NULL)
        PyErr_Clear();
    return content;
}

/* Whether a row can be had of these. */
static int
read_row(const Ledger *self, Row *row, PyObject *direction, PyObject *peer, PyObject *reason)
{
    Py_ssize_t ignored;
    if (!PyBytes_Check(peer) || (reason != Py_None && utf8(reason, &ignored) == NULL))
        return 0;
    row->direction = utf8(direction, &row->direction_size);
    row->peer = PyBytes_AS_STRING(peer);
    row->peer_size = PyBytes_GET_SIZE(peer);
    row->reason = reason;
    return row->direction != NULL && self->used[PEERS] + row->peer_size <= INT32_MAX
           && self->used[DIRECTIONS] + row->direction_size <= INT32_MAX;
}

static int
note_reason(Ledger *self, PyObject *reason)
{
    PyObject *pair = Py_BuildValue("nO", self->rows, reason);
    int failed = pair == NULL ? -1 : PyList_Append(self->reasons, pair);
    Py_XDECREF(pair);
    return failed;
}

/* Adds a row to all columns, or to none where there is no memory for it. */
static int
add(Ledger *self, const Row *row, PyObject *frames, Py_ssize_t size)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(frames), width = sizeof(int32_t);
    if (reserve(self, TIMES, sizeof row->at) < 0 || reserve(self, ENDS, width) < 0
        || reserve(self, FRAME_ENDS, count * width) < 0 || reserve(self, FRAMES, size) < 0
        || reserve(self, DIRECTION_ENDS, width) < 0 || reserve(self, DIRECTIONS, row->direction_size) < 0
        || reserve(self, PEER_ENDS, width) < 0 || reserve(self, PEERS, row->peer_size) < 0
        || (row->reason != Py_None && note_reason(self, row->reason) < 0)) {
        PyErr_Clear();
        return -1;
    }
    PyObject **items = PySequence_Fast_ITEMS(frames);
    int32_t place = (int32_t)self->used[FRAMES];
    int32_t *ends = (int32_t *)(PyByteArray_AS_STRING(self->buffers[FRAME_ENDS]) + self->used[FRAME_ENDS]);
    char *to = PyByteArray_AS_STRING(self->buffers[FRAMES]);
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_buffer view;
        if (open_frame(items[i], &view) < 0) { /* it was open a moment ago, and no Python has run */
            ends[i] = place;
            continue;
        }
        memcpy(to + place, view.buf, (size_t)view.len);
        ends[i] = place += (int32_t)view.len;
        close_frame(&view);
    }
    self->used[FRAMES] = place;
    self->used[FRAME_ENDS] += count * width;
    int32_t last = (int32_t)(self->used[FRAME_ENDS] / width - 1);
    extend(self, ENDS, &last, width);
    extend(self, TIMES, &row->at, sizeof row->at);
    extend_text(self, DIRECTIONS, row->direction, row->direction_size);
    extend_text(self, PEERS, row->peer, row->peer_size);
    self->rows++;
    return 0;
}

/* Whether whoever counts has room for one more; -1 with an exception. */
static int
is_admitted(Ledger *self, long long weight)
{
    PyObject *answer = PyObject_CallFunction(self->admit, "L", weight);
    int admitted = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return admitted;
}

static int64_t
microseconds(long long at)
{
    struct timespec now = {at / 1000000000, at % 1000000000};
    if (at == 0)
        clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* record(direction, peer, frames, reason=None, at=0) */
static PyObject *
record(Ledger *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 3 || count > 5)
        return PyErr_Format(PyExc_TypeError, "record() takes 3 to 5 arguments (%zd given)", count);
    PyObject *reason = count > 3 ? args[3] : Py_None;
    long long at = count == 5 ? PyLong_AsLongLong(args[4]) : 0, weight = 0;
    PyObject *frames = at == -1 && PyErr_Occurred() ? NULL : PySequence_Fast(args[2], "frames must be a list of bytes");
    if (frames == NULL)
        return NULL;
    Row row;
    int admitted = 1, added = -1;
    Py_ssize_t size = read_row(self, &row, args[0], args[1], reason) ? size_of(self, frames) : -1;
    if (size >= 0) {
        self->put += weight = RECORD_WEIGHT + PySequence_Fast_GET_SIZE(frames) * FRAME_WEIGHT + size;
        if (self->put > self->mark) {
            admitted = is_admitted(self, weight);
            size = admitted > 0 ? size_of(self, frames) : -1; /* once more: Python has run */
        }
        row.at = microseconds(at);
        if (size >= 0)
            added = add(self, &row, frames, size);
    }
    Py_DECREF(frames);
    if (added < 0)
        self->put -= weight;
    if (added < 0 && admitted > 0)
        return PyObject_CallFunctionObjArgs(self->refuse, args[0], args[1], args[2], reason, NULL);
    return admitted < 0 ? NULL : Py_NewRef(Py_None);
}

static Py_ssize_t
length(Ledger *self)
{
    return self->rows;
}

static PyObject *
take(Ledger *self, PyObject *spare)
{
    return self->rows > 0 ? cut_off(self, spare) : Py_NewRef(Py_None);
}

static PyObject *
make(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *admit, *refuse;
    if (!PyArg_ParseTuple(args, "OO", &admit, &refuse))
        return NULL;
    Ledger *self = (Ledger *)type->tp_alloc(type, 0);
    PyObject *nothing = self == NULL ? NULL : cut_off(self, Py_None);
    if (nothing == NULL) {
        Py_XDECREF(self);
        return NULL;
    }
    Py_DECREF(nothing);
    self->admit = Py_NewRef(admit);
    self->refuse = Py_NewRef(refuse);
    return (PyObject *)self;
}

static int
traverse(Ledger *self, visitproc visit, void *arg)
{
    Py_VISIT(self->admit);
    Py_VISIT(self->refuse);
    return 0;
}

static int
clear(Ledger *self)
{
    Py_CLEAR(self->admit);
    Py_CLEAR(self->refuse);
    return 0;
}

static void
dealloc(Ledger *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    for (int i = 0; i < BUFFERS; i++)
        Py_CLEAR(self->buffers[i]);
    Py_CLEAR(self->reasons);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"record", (PyCFunction)(void (*)(void))record, METH_FASTCALL, "Take one message in."},
    {"take", (PyCFunction)take, METH_O, "What was recorded as a block, or None; given one whose memory may be used again, or None."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"put", T_LONGLONG, offsetof(Ledger, put), 0, "What all that ever came in weighs, in bytes."},
    {"mark", T_LONGLONG, offsetof(Ledger, mark), 0, "When put is past this, admit is asked."},
    {NULL, 0, 0, 0, NULL},
};

static PySequenceMethods sequence = {.sq_length = (lenfunc)length};

static PyTypeObject type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framewire.capture._ledger.Ledger",
    .tp_basicsize = sizeof(Ledger),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = make,
    .tp_dealloc = (destructor)dealloc,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_methods = methods,
    .tp_members = members,
    .tp_as_sequence = &sequence,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "framewire.capture._ledger", .m_size = -1};

PyMODINIT_FUNC
PyInit__ledger(void)
{
    PyObject *created = PyType_Ready(&type) < 0 ? NULL : PyModule_Create(&module);
    if (created != NULL && (PyModule_AddObjectRef(created, "Ledger", (PyObject *)&type) < 0
                            || PyModule_AddIntConstant(created, "EDITION", EDITION) < 0))
        Py_CLEAR(created);
    return created;
}
