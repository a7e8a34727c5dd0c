/* Recorded messages as Arrow's buffers, from the call that records them on.

   A message has about 30 frames. To keep them as Python objects, and to make a column of them later with the interpreter
   in hand, takes five times as long as to copy their few hundred bytes to where they belong at once. What is one value
   for a message stays in lists, which pyarrow reads fast enough.

   It relies on the GIL: the event loop records, another thread takes. No Python runs while a row is added. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <stdint.h>
#include <structmember.h>
#include <time.h>

enum { EDITION = 1 }; /* one more whenever a call changes: the Python side does not use another build */
enum { RECORD_WEIGHT = 120, FRAME_WEIGHT = 4, FEWEST_BYTES = 1024, MOST_SPARE_BYTES = 16 * 1024 * 1024 };
enum { TIMES, ENDS, STARTS, FRAMES, BUFFERS, DIRECTIONS = BUFFERS, PEERS, REASONS, COLUMNS };

typedef struct {
    PyObject_HEAD
    PyObject *admit, *refuse;
    PyObject *block[COLUMNS]; /* what was recorded: bytearrays with room at their end, then lists */
    Py_ssize_t used[BUFFERS];
    long long put, mark;
} Ledger;

static int
reserve(Ledger *self, int which, Py_ssize_t size)
{
    PyObject *buffer = self->block[which];
    Py_ssize_t need = self->used[which] + size, room = PyByteArray_GET_SIZE(buffer);
    return need <= room ? 0 : PyByteArray_Resize(buffer, need < 2 * room ? 2 * room : need);
}

static void
extend(Ledger *self, int which, const void *content, Py_ssize_t size)
{
    memcpy(PyByteArray_AS_STRING(self->block[which]) + self->used[which], content, (size_t)size);
    self->used[which] += size;
}

/* The block as a tuple; the next one is begun, in the buffers of an older one where nobody reads them any more: new
   memory costs as much as what is put there. Arrow's offsets begin with a 0. */
static PyObject *
cut_off(Ledger *self, PyObject *spare)
{
    PyObject *next = PyTuple_New(COLUMNS);
    for (int i = 0; next != NULL && i < COLUMNS; i++) {
        PyObject *old = PyTuple_Check(spare) && i < PyTuple_GET_SIZE(spare) ? PyTuple_GET_ITEM(spare, i) : Py_None;
        int again = i < BUFFERS && PyByteArray_CheckExact(old) && ((PyByteArrayObject *)old)->ob_exports == 0
                    && PyByteArray_GET_SIZE(old) >= FEWEST_BYTES && PyByteArray_GET_SIZE(old) <= MOST_SPARE_BYTES;
        PyObject *column = again ? Py_NewRef(old)
                           : i < BUFFERS ? PyByteArray_FromStringAndSize(NULL, FEWEST_BYTES) : PyList_New(0);
        PyTuple_SET_ITEM(next, i, column);
        if (column == NULL)
            Py_CLEAR(next);
    }
    for (int i = 0; next != NULL && i < COLUMNS; i++) {
        PyObject *column = PyTuple_GET_ITEM(next, i);
        PyTuple_SET_ITEM(next, i, self->block[i]);
        self->block[i] = column;
        if (i < BUFFERS)
            self->used[i] = 0;
    }
    const int32_t zero = 0;
    if (next != NULL) {
        extend(self, ENDS, &zero, sizeof zero);
        extend(self, STARTS, &zero, sizeof zero);
    }
    return next;
}

/* How many bytes there are in frames; -1 where something else is among them, or an offset would be too large. */
static Py_ssize_t
size_of(const Ledger *self, PyObject *frames)
{
    Py_ssize_t size = 0, count = PySequence_Fast_GET_SIZE(frames), width = sizeof(int32_t);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *frame = PySequence_Fast_GET_ITEM(frames, i);
        if (!PyBytes_Check(frame))
            return -1;
        size += PyBytes_GET_SIZE(frame);
    }
    int fits = self->used[FRAMES] + size <= INT32_MAX && self->used[STARTS] + count * width <= INT32_MAX;
    return fits ? size : -1;
}

/* Adds a row to all columns, or to none where there is no memory for it. */
static int
add(Ledger *self, PyObject *frames, Py_ssize_t size, int64_t at, PyObject *const *names)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(frames), width = sizeof(int32_t), rows = PyList_GET_SIZE(self->block[PEERS]);
    int failed = reserve(self, TIMES, sizeof at) < 0 || reserve(self, ENDS, width) < 0
                 || reserve(self, STARTS, count * width) < 0 || reserve(self, FRAMES, size) < 0;
    for (int i = 0; !failed && i < COLUMNS - BUFFERS; i++)
        failed = PyList_Append(self->block[BUFFERS + i], names[i]) < 0;
    if (failed) {
        for (int i = BUFFERS; i < COLUMNS; i++)
            PyList_SetSlice(self->block[i], rows, PY_SSIZE_T_MAX, NULL);
        PyErr_Clear();
        return -1;
    }
    int32_t last = (int32_t)(self->used[STARTS] / width - 1 + count), place = (int32_t)self->used[FRAMES];
    char *starts = PyByteArray_AS_STRING(self->block[STARTS]) + self->used[STARTS];
    char *to = PyByteArray_AS_STRING(self->block[FRAMES]);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *frame = PySequence_Fast_GET_ITEM(frames, i);
        Py_ssize_t length = PyBytes_GET_SIZE(frame);
        memcpy(to + place, PyBytes_AS_STRING(frame), (size_t)length);
        place += (int32_t)length;
        memcpy(starts + i * width, &place, sizeof place);
    }
    self->used[FRAMES] = place;
    self->used[STARTS] += count * width;
    extend(self, ENDS, &last, width);
    extend(self, TIMES, &at, sizeof at);
    return 0;
}

/* Whether whoever counts has room for one more; -1 with an exception. */
static int
is_admitted(Ledger *self, long long weight)
{
    if (self->put <= self->mark)
        return 1;
    PyObject *answer = PyObject_CallFunction(self->admit, "L", weight);
    int admitted = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return admitted;
}

/* record(direction, peer, frames, reason=None, at=0) */
static PyObject *
record(Ledger *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 3 || count > 5)
        return PyErr_Format(PyExc_TypeError, "record() takes 3 to 5 arguments (%zd given)", count);
    PyObject *names[] = {args[0], args[1], count > 3 ? args[3] : Py_None};
    long long at = count == 5 ? PyLong_AsLongLong(args[4]) : 0, weight = 0;
    PyObject *frames = at == -1 && PyErr_Occurred() ? NULL : PySequence_Fast(args[2], "frames must be a list of bytes");
    if (frames == NULL)
        return NULL;
    int admitted = 1, added = -1;
    Py_ssize_t size = size_of(self, frames);
    if (size >= 0 && PyUnicode_Check(names[0]) && PyBytes_Check(names[1]) && (names[2] == Py_None || PyUnicode_Check(names[2]))) {
        self->put += weight = RECORD_WEIGHT + PySequence_Fast_GET_SIZE(frames) * FRAME_WEIGHT + size;
        admitted = is_admitted(self, weight);
        struct timespec now = {at / 1000000000, at % 1000000000};
        if (at == 0)
            clock_gettime(CLOCK_REALTIME, &now);
        /* Once more how many they are: Python may have run. */
        if (admitted > 0 && (size = size_of(self, frames)) >= 0)
            added = add(self, frames, size, (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000, names);
    }
    Py_DECREF(frames);
    if (added < 0)
        self->put -= weight;
    if (added < 0 && admitted > 0)
        return PyObject_CallFunctionObjArgs(self->refuse, names[0], names[1], args[2], names[2], NULL);
    return admitted < 0 ? NULL : Py_NewRef(Py_None);
}

static Py_ssize_t
length(Ledger *self)
{
    return PyList_GET_SIZE(self->block[PEERS]);
}

static PyObject *
take(Ledger *self, PyObject *spare)
{
    return length(self) > 0 ? cut_off(self, spare) : Py_NewRef(Py_None);
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
    for (int i = 0; i < COLUMNS; i++)
        Py_CLEAR(self->block[i]);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"record", (PyCFunction)(void (*)(void))record, METH_FASTCALL, "Take one message in."},
    {"take", (PyCFunction)take, METH_O, "The columns of what was recorded, or None; given columns that may be used again, or None."},
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
