/* What is new in every message, put into its frames and taken out again: see moulds.py, which does the same.

   Each takes a few hundred instructions here, and some thousands in Python, for every message that a node sends or
   receives. Nothing is decided here: which frames these are is told by the table of the format. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One more whenever a call is added or changed: the Python side does not use an older build. */
enum { EDITION = 1 };

enum { BODY, TTL, FLOW, KEY, SIGNATURE, HOLES };

typedef struct {
    PyObject_HEAD
    Py_ssize_t places[HOLES]; /* from the front, or from the end where negative */
    Py_ssize_t fewest;        /* frames that a message must have */
} Holes;

static int
holes_init(Holes *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"body", "ttl", "correlation_id", "callback_key", "signature", NULL};
    Py_ssize_t *at = self->places;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nnnnn", names, &at[BODY], &at[TTL], &at[FLOW], &at[KEY], &at[SIGNATURE]))
        return -1;
    self->fewest = 0;
    for (int hole = 0; hole < HOLES; hole++) {
        Py_ssize_t needed = at[hole] < 0 ? -at[hole] : at[hole] + 1;
        if (needed > self->fewest)
            self->fewest = needed;
    }
    return 0;
}

static Py_ssize_t
place(const Holes *self, int hole, Py_ssize_t count)
{
    Py_ssize_t at = self->places[hole];
    return at < 0 ? at + count : at;
}

static int
has_all(const Holes *self, PyObject *frames)
{
    if (!PyList_Check(frames)) {
        PyErr_Format(PyExc_TypeError, "frames are a list, not %s", Py_TYPE(frames)->tp_name);
        return 0;
    }
    if (PyList_GET_SIZE(frames) < self->fewest) {
        PyErr_SetString(PyExc_IndexError, "list index out of range");
        return 0;
    }
    return 1;
}

/* Numbers are 64 bits, the lowest byte first. */
static PyObject *
packed(PyObject *number)
{
    long long value = PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    uint64_t rest = (uint64_t)value;
    unsigned char raw[8];
    for (int i = 0; i < 8; i++, rest >>= 8)
        raw[i] = (unsigned char)(rest & 0xFF);
    return PyBytes_FromStringAndSize((const char *)raw, sizeof raw);
}

/* NULL without an exception where a frame is no number. */
static PyObject *
unpacked(PyObject *frame)
{
    if (!PyBytes_Check(frame) || PyBytes_GET_SIZE(frame) != 8)
        return NULL;
    const unsigned char *raw = (const unsigned char *)PyBytes_AS_STRING(frame);
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | raw[i];
    return PyLong_FromLongLong((long long)value);
}

static PyObject *
holes_filled(Holes *self, PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 1 + HOLES) {
        PyErr_Format(PyExc_TypeError, "filled takes %d arguments, not %zd", 1 + HOLES, given);
        return NULL;
    }
    PyObject *mould = arguments[0], *news[HOLES];
    if (!has_all(self, mould))
        return NULL;
    for (int hole = 0; hole < HOLES; hole++) {
        PyObject *new = arguments[1 + hole];
        news[hole] = hole == TTL || hole == KEY ? packed(new) : Py_NewRef(new);
        if (news[hole] == NULL) {
            while (hole-- > 0)
                Py_DECREF(news[hole]);
            return NULL;
        }
    }
    Py_ssize_t count = PyList_GET_SIZE(mould);
    PyObject *frames = PyList_GetSlice(mould, 0, count);
    for (int hole = 0; hole < HOLES; hole++) {
        if (frames == NULL) {
            Py_DECREF(news[hole]);
            continue;
        }
        Py_ssize_t at = place(self, hole, count);
        PyObject *before = PyList_GET_ITEM(frames, at);
        PyList_SET_ITEM(frames, at, news[hole]);
        Py_DECREF(before);
    }
    return frames;
}

static PyObject *
holes_contents(Holes *self, PyObject *frames)
{
    if (!has_all(self, frames))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(frames);
    PyObject *contents = PyTuple_New(HOLES);
    if (contents == NULL)
        return NULL;
    for (int hole = 0; hole < HOLES; hole++) {
        PyObject *frame = PyList_GET_ITEM(frames, place(self, hole, count));
        PyObject *content = hole == TTL || hole == KEY ? unpacked(frame) : Py_NewRef(frame);
        if (content == NULL) {
            Py_DECREF(contents);
            if (PyErr_Occurred())
                return NULL;
            Py_RETURN_NONE;
        }
        PyTuple_SET_ITEM(contents, hole, content);
    }
    return contents;
}

/* Most frames of messages that are alike are the same objects. One that is only equal is kept in the other's place:
   those of the next message are more probably the same as these. */
static PyObject *
holes_fits(Holes *Py_UNUSED(self), PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 2 || !PyList_Check(arguments[0]) || !PyList_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "fits takes two lists");
        return NULL;
    }
    PyObject *mould = arguments[0], *frames = arguments[1];
    Py_ssize_t count = PyList_GET_SIZE(mould);
    if (count != PyList_GET_SIZE(frames))
        Py_RETURN_FALSE;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *kept = PyList_GET_ITEM(mould, i), *frame = PyList_GET_ITEM(frames, i);
        if (kept == frame || kept == Py_None)
            continue;
        if (!PyBytes_Check(kept) || !PyBytes_Check(frame))
            Py_RETURN_FALSE;
        Py_ssize_t size = PyBytes_GET_SIZE(kept);
        if (size != PyBytes_GET_SIZE(frame) || memcmp(PyBytes_AS_STRING(kept), PyBytes_AS_STRING(frame), (size_t)size) != 0)
            Py_RETURN_FALSE;
        PyList_SET_ITEM(mould, i, Py_NewRef(frame));
        Py_DECREF(kept);
    }
    Py_RETURN_TRUE;
}

static PyMethodDef holes_methods[] = {
    {"filled", (PyCFunction)(void (*)(void))holes_filled, METH_FASTCALL, "A copy of some frames with what is new put in."},
    {"contents", (PyCFunction)holes_contents, METH_O, "What is new in some frames; None where a number is none."},
    {"fits", (PyCFunction)(void (*)(void))holes_fits, METH_FASTCALL, "Whether frames are those of a mould, None apart."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject holes_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framewire.wire._moulds.Holes",
    .tp_doc = "Which frames are new in every message.",
    .tp_basicsize = sizeof(Holes),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)holes_init,
    .tp_methods = holes_methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "framewire.wire._moulds",
    .m_doc = "What is new in every message.",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__moulds(void)
{
    const char *pure = getenv("FRAMEWIRE_PURE");
    if (pure != NULL && *pure != '\0' && strcmp(pure, "0") != 0) {
        PyErr_SetString(PyExc_ImportError, "FRAMEWIRE_PURE is set");
        return NULL;
    }
    if (PyType_Ready(&holes_type) < 0)
        return NULL;
    PyObject *created = PyModule_Create(&module);
    if (created == NULL || PyModule_AddObjectRef(created, "Holes", (PyObject *)&holes_type) < 0 ||
        PyModule_AddIntConstant(created, "EDITION", EDITION) < 0) {
        Py_XDECREF(created);
        return NULL;
    }
    return created;
}
