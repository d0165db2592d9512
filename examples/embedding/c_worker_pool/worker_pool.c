/* Rankings drawn by a pool of worker threads; compiles as C and as C++. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <stdlib.h>

#include "plrank.h"

static const plrank_api *plrank; /* set once, when the module is imported */

typedef struct {
    const double *scores; /* (n_queries, n_items) */
    int64_t n_queries, n_items, cutoff, n_samples;
    const uint64_t *key;
    int32_t *rankings;    /* (n_queries, n_samples, cutoff) */
    int64_t next_query;
    int32_t status;
} job;

/* Take queries until there are none left. The numbers of a query depend on the key and on its number alone, whichever
 * worker draws them. */
static void *work(void *argument)
{
    job *todo = (job *)argument;
    const int64_t size = plrank->sample_rankings_workspace(todo->n_items, todo->cutoff, todo->n_samples);
    void *workspace = malloc(size > 0 ? size : 1);
    char stream[PLRANK_STREAM_SIZE];
    int32_t status = plrank->stream_init(stream, sizeof stream, todo->key[0], todo->key[1], 0);
    while (status == PLRANK_OK) {
        const int64_t query = __atomic_fetch_add(&todo->next_query, 1, __ATOMIC_RELAXED);
        if (query >= todo->n_queries)
            break;
        status = plrank->stream_seek(stream, query, 0);
        if (status == PLRANK_OK)
            status = plrank->sample_rankings(
                stream, todo->scores + query * todo->n_items, todo->n_items, todo->cutoff, todo->n_samples, PLRANK_AUTO,
                todo->rankings + query * todo->n_samples * todo->cutoff, workspace, size);
    }
    if (status != PLRANK_OK)
        __atomic_store_n(&todo->status, status, __ATOMIC_RELAXED);
    free(workspace);
    return NULL;
}

static int32_t run(job *todo, int n_workers)
{
    pthread_t workers[64];
    int started = 0;
    while (started < n_workers && started < 64 && pthread_create(&workers[started], NULL, work, todo) == 0)
        started++;
    work(todo); /* the calling thread is one of the pool */
    while (started > 0)
        pthread_join(workers[--started], NULL);
    return todo->status;
}

/* sample(scores, n_items, cutoff, n_samples, key, rankings, n_workers), arrays as buffers */
static PyObject *sample(PyObject *self, PyObject *args)
{
    Py_buffer scores, key, rankings;
    long long n_items, cutoff, n_samples;
    int n_workers;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*LLLy*w*i", &scores, &n_items, &cutoff, &n_samples, &key, &rankings, &n_workers))
        return NULL;
    job todo = {(const double *)scores.buf, 0, n_items, cutoff, n_samples, (const uint64_t *)key.buf,
                (int32_t *)rankings.buf, 0, PLRANK_OK};
    int fits = 0 < cutoff && cutoff <= n_items && n_samples > 0 && key.len == 16;
    if (fits) {
        todo.n_queries = scores.len / (Py_ssize_t)(n_items * sizeof(double));
        fits = rankings.len == (Py_ssize_t)(todo.n_queries * n_samples * cutoff * sizeof(int32_t));
    }
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        todo.status = run(&todo, n_workers);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&scores);
    PyBuffer_Release(&key);
    PyBuffer_Release(&rankings);
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "the arrays do not fit each other");
    if (todo.status != PLRANK_OK)
        return PyErr_Format(PyExc_ValueError, "%s", plrank->strerror(todo.status));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"sample", sample, METH_VARARGS, "Draw rankings of many queries."}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "worker_pool", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_worker_pool(void)
{
    plrank = import_plrank();
    return plrank ? PyModule_Create(&module) : NULL;
}
