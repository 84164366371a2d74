/*===- Latency.h - The latency model for other languages ------------------===*\
|*
|* libftuner_latency.so: the formulas of LatencyFormulas.h on arrays of doubles,
|* with devices, calibrations and FTuner's own kernels by name. The Python
|* package ftuner.latency is its user.
|*
|* Records (a device, a part, a grid, constants, terms) are doubles in the order
|* of ftuner_latency_field. Functions that can fail return 0, or another number
|* after writing what was wrong to `error` (a buffer of `errorBytes`, ended by a
|* zero byte). No function keeps state; all may be called by several threads at
|* once.
|*
\*===----------------------------------------------------------------------===*/
#ifndef FTUNER_CAPI_LATENCY_H
#define FTUNER_CAPI_LATENCY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Changes with every function or the meaning of its arguments. */
#define FTUNER_LATENCY_ABI 10
int ftuner_latency_abi(void);

/** Name of field `index` of a record; null beyond the last. Records are
    "device"; "part" (whether the kernel is streaming, a block, the number of
    such blocks and the steps of each); "grid"; "constants"; "terms" (the total
    first). A part has the fields of both kinds of kernels: "loop" names those
    of kernels with main loops, "stream" those of streaming, memory-bound ones;
    a kernel of the other kind ignores them. "learned_device" names the fields
    of a device that learned predictors read, in their order. */
const char *ftuner_latency_field(const char *record, size_t index);
/** Writes what that field is where nothing else is known. Returns 1 if records
    may leave it out, with that value, 0 if they must have it, and -1 beyond the
    last. */
int ftuner_latency_field_default(const char *record, size_t index,
                                 double *value);
/** Name of codegen path `index`; null beyond the last. */
const char *ftuner_latency_path(size_t index);
/** Name of field `index` of a program of a path: those of every path, then
   those of the path's schedules; null beyond the last, and for unknown paths.
 */
const char *ftuner_latency_program_field(const char *path, size_t index);
/** What that field is where rows leave it out; -1 if they must have it. */
int ftuner_latency_program_default(const char *path, size_t index);
/** Unit and meaning of a constant, its start value and the bounds of fits. */
int ftuner_latency_constant(size_t index, const char **unit, const char **text,
                            double *start, double *low, double *high);

/** Figures of a built-in device, or of the description at that path, and its
    name. */
int ftuner_latency_device(const char *nameOrPath, double *device, char *name,
                          size_t nameBytes, char *error, size_t errorBytes);
/** Constants of a built-in calibration, or of the file at that path. */
int ftuner_latency_calibration(const char *nameOrPath, double *constants,
                               double *deviation, char *error,
                               size_t errorBytes);
/** Constants that the compiler takes for a device (a name or path). */
int ftuner_latency_default_calibration(const char *device, double *constants,
                                       double *deviation, char *error,
                                       size_t errorBytes);

/** Microseconds of `numRows` launches.
    devices: numDevices records; deviceOfRow: the index of each row's.
    parts: numRows × partsOfRow (1 or 2) records, those without blocks left out;
    both of the same kind, the taller part last; a row without any takes no
    time. grids: numRows records. constants: one record.
    microseconds: numRows results. terms: numRows records of their terms, or
    null. */
int ftuner_latency_predict(const double *devices, size_t numDevices,
                           const int64_t *deviceOfRow, const double *parts,
                           size_t partsOfRow, const double *grids,
                           size_t numRows, const double *constants,
                           double *microseconds, double *terms, char *error,
                           size_t errorBytes);

/** Name of the type with number `index` that programs multiply in: f32, tf32,
    f16, bf16, i8. Null beyond the last. */
const char *ftuner_latency_program_type(size_t index);

/** Launches of FTuner's own programs, products, by a codegen path on a device
   (a name or path of a file). programs: numRows records of whole numbers, in
   the order of ftuner_latency_program_field(path, …); type is the number of a
   type; block_m,
   block_n and block_k are the block tile; second_block is the height of a
   second one along combine_axis (0: m; 1: n), or 0: there is one; first_count
   and second_count 0: the partition that the compiler takes. Where rows of a
   shape are not aligned for a program's accesses, it is described with narrower
   ones: so it runs. parts: numRows × 2 records; grids: numRows records. An
   error begins with "row N: " where it is of one row. */
int ftuner_latency_programs(const char *device, const char *path,
                            const int64_t *programs, size_t numRows,
                            double *parts, double *grids, char *error,
                            size_t errorBytes);

/** Name of feature `index` of a statement (ProgramFeatures.h); null beyond the
    last. */
const char *ftuner_latency_program_feature(size_t index);

/** The trees of such programs (ProgramAst.h) by their statements, a tree for
    each part that has blocks. blocks: numRows × 2, blocks of each part, 0 where
    there are none. statements: numRows × 2, how many its tree has. ordering and
    features: of the statements of all trees one behind the other, their places
    in the tree's sequence and their features. Both may be null, not one; else
    they have room for `capacity` statements, and fewer than there are is an
    error. */
int ftuner_latency_program_trees(const char *device, const char *path,
                                 const int64_t *programs, size_t numRows,
                                 double *blocks, int64_t *statements,
                                 int64_t *ordering, float *features,
                                 size_t capacity, char *error,
                                 size_t errorBytes);

/** The statements of trees that are written as JSON: programs of one structure,
    in whose text a number may be {"column": i} (AstTemplate.h). values: numRows
    × numColumns. statements: how many each tree has. ordering: their places in
    the tree's sequence, the same in all rows; features: numRows × statements ×
    features, which must be finite. Both may be null, not one; else they have
    room for `capacity` statements of a tree, and fewer than there are is an
    error. An error begins with "row N: " where it is of one row. */
int ftuner_latency_json_trees(const char *json, const double *values,
                              size_t numColumns, size_t numRows,
                              int64_t *statements, int64_t *ordering,
                              float *features, size_t capacity, char *error,
                              size_t errorBytes);

/** What a predictor (docs/learned-model.md; a built-in name or a path) says of
    such programs: microseconds, or the ratio to what the latency model
   predicts; `corrects` is set to whether these are ratios. -1 for a program
   that it knows nothing of, or predicts no finite number for. values: numRows
   results. */
int ftuner_latency_learned(const char *predictor, const char *device,
                           const char *path, const int64_t *programs,
                           size_t numRows, double *values, int *corrects,
                           char *error, size_t errorBytes);

/** Data cycles and 128-byte lines of accesses of a warp: addresses has 32 words
    (negative for an idle lane) of each, width the words that a lane moves.
   Either result may be null. */
int ftuner_latency_accesses(const int64_t *addresses, const int64_t *widths,
                            size_t numAccesses, int32_t *wavefronts,
                            int32_t *lines, char *error, size_t errorBytes);

#ifdef __cplusplus
}
#endif

#endif /* FTUNER_CAPI_LATENCY_H */
