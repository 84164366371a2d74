//===- Latency.cpp - The latency model for other languages ----------------===//
#include "FTuner/CAPI/Latency.h"
#include "FTuner/CostModel/Calibration.h"
#include "FTuner/CostModel/LatencyFormulas.h"
#include "FTuner/CostModel/LatencyLaunch.h"
#include "FTuner/CostModel/Predictor.h"
#include "FTuner/CostModel/WarpAccess.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/AstTemplate.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/ProgramFeatures.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace ftuner;

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

namespace {
/// A member of a record in C++: a number, or a truth that is 0 or 1.
template <typename Record>
struct Member {
  double Record::*number = nullptr;
  bool Record::*truth = nullptr;

  constexpr Member(double Record::*number) : number(number) {}
  constexpr Member(bool Record::*truth) : truth(truth) {}
};

/// A field of a record of doubles. Records of kernels hold the members of both
/// kinds, of which each kernel reads and writes its own.
template <typename Record>
struct Field {
  const char *name;
  Member<Record> member;
  bool isOptional = false;

  void read(Record &record, double value) const {
    if (member.number)
      record.*member.number = value;
    else
      record.*member.truth = value != 0;
  }
  double write(const Record &record) const {
    return member.number ? record.*member.number : record.*member.truth;
  }
};
} // namespace

/// LatencyRecords.def has the members of the records.
static constexpr bool Required = false, Optional = true;

static constexpr Field<LatencyDevice> deviceFields[] = {
#define FTUNER_LATENCY_DEVICE(MEMBER, NAME, VALUE)                             \
  {NAME, &LatencyDevice::MEMBER},
#include "FTuner/CostModel/LatencyRecords.def"
};

static constexpr Field<LatencyDevice> learnedFields[] = {
#define FTUNER_LATENCY_LEARNED_DEVICE(MEMBER, NAME, VALUE)                     \
  {NAME, &LatencyDevice::MEMBER},
#include "FTuner/CostModel/LatencyRecords.def"
};

static constexpr Field<LatencyBlock> blockFields[] = {
#define FTUNER_LATENCY_BLOCK(TYPE, MEMBER, NAME, VALUE, NEED)                  \
  {NAME, &LatencyBlock::MEMBER, NEED},
#include "FTuner/CostModel/LatencyRecords.def"
};

static constexpr Field<LatencyLoop> loopFields[] = {
#define FTUNER_LATENCY_LOOP(TYPE, MEMBER, NAME, VALUE, NEED)                   \
  {NAME, &LatencyLoop::MEMBER, NEED},
#include "FTuner/CostModel/LatencyRecords.def"
};

static constexpr Field<LatencyStream> streamFields[] = {
#define FTUNER_LATENCY_STREAM(TYPE, MEMBER, NAME, VALUE, NEED)                 \
  {NAME, &LatencyStream::MEMBER, NEED},
#include "FTuner/CostModel/LatencyRecords.def"
};

static constexpr Field<LatencyPart> countFields[] = {
#define FTUNER_LATENCY_PART(MEMBER, NAME, VALUE) {NAME, &LatencyPart::MEMBER},
#include "FTuner/CostModel/LatencyRecords.def"
};

static constexpr Field<LatencyGrid> gridFields[] = {
#define FTUNER_LATENCY_GRID(TYPE, MEMBER, NAME, VALUE, NEED)                   \
  {NAME, &LatencyGrid::MEMBER, NEED},
#include "FTuner/CostModel/LatencyRecords.def"
};

static constexpr Field<LatencyConstants> constantFields[] = {
#define FTUNER_LATENCY_CONSTANT(MEMBER, NAME, UNIT, VALUE, LOW, HIGH, TEXT)    \
  {NAME, &LatencyConstants::MEMBER},
#include "FTuner/CostModel/LatencyConstants.def"
};

static constexpr Field<LatencyPrediction> termFields[] = {
#define FTUNER_LATENCY_TERM(MEMBER, NAME) {NAME, &LatencyPrediction::MEMBER},
#define FTUNER_LATENCY_FIGURE(MEMBER, NAME, VALUE)                             \
  {NAME, &LatencyPrediction::MEMBER},
#include "FTuner/CostModel/LatencyRecords.def"
};

namespace {
/// Facts of a field that other languages see.
struct FieldFacts {
  const char *name;
  double value;
  bool isOptional;
};
using Record = std::vector<FieldFacts>;
} // namespace

template <typename Values, size_t N>
static void append(Record &record, const Field<Values> (&fields)[N]) {
  for (const Field<Values> &field : fields)
    record.push_back({field.name, field.write(Values()), field.isOptional});
}

template <typename... Fields>
static Record joined(const Fields &...fields) {
  Record record;
  (append(record, fields), ...);
  return record;
}

/// A part: the kind of its kernel, a block of that kind, and how often it runs.
static Record partRecord() {
  Record record = {{"is_streaming", 0, Optional}};
  append(record, blockFields);
  append(record, loopFields);
  append(record, streamFields);
  append(record, countFields);
  return record;
}

/// Returns a record by its name in Latency.h; null if there is none.
static const Record *findRecord(llvm::StringRef name) {
  static const std::pair<llvm::StringRef, Record> records[] = {
      {"device", joined(deviceFields)},
      {"learned_device", joined(learnedFields)},
      {"part", partRecord()},
      {"loop", joined(loopFields)},
      {"stream", joined(streamFields)},
      {"grid", joined(gridFields)},
      {"constants", joined(constantFields)},
      {"terms", joined(termFields)},
  };
  for (const auto &[recordName, record] : records)
    if (recordName == name)
      return &record;
  return nullptr;
}

static constexpr size_t partSize =
    1 + std::size(blockFields) + std::size(loopFields) +
    std::size(streamFields) + std::size(countFields);

namespace {
/// A program of FTuner, as a row says it.
struct ProgramRow {
  int64_t batch, m, n, k, transposeLhs, transposeRhs;
  int64_t blockM, blockN, blockK;
  int64_t combineAxis, secondBlock, firstCount, secondCount;
  int64_t reduceSplit;
  /// A place in `programTypes`.
  int64_t type;
};
/// A field of it, and the minimum that it may be.
struct ProgramField {
  const char *name;
  int64_t ProgramRow::*number;
  int64_t min;
};
} // namespace

/// Fields of every program. After them come the fields of its path's schedules.
static constexpr ProgramField programFields[] = {
    {"batch", &ProgramRow::batch, 1},
    {"m", &ProgramRow::m, 1},
    {"n", &ProgramRow::n, 1},
    {"k", &ProgramRow::k, 1},
    {"transpose_lhs", &ProgramRow::transposeLhs, 0},
    {"transpose_rhs", &ProgramRow::transposeRhs, 0},
    {"block_m", &ProgramRow::blockM, 1},
    {"block_n", &ProgramRow::blockN, 1},
    {"block_k", &ProgramRow::blockK, 1},
    {"combine_axis", &ProgramRow::combineAxis, 0},
    {"second_block", &ProgramRow::secondBlock, 0},
    {"first_count", &ProgramRow::firstCount, 0},
    {"second_count", &ProgramRow::secondCount, 0},
    {"reduce_split", &ProgramRow::reduceSplit, 1},
    {"type", &ProgramRow::type, 0},
};

namespace {
/// How a program multiplies, of which elements, into sums of which type.
struct ProgramType {
  const char *name;
  ElementType elements, multiplied, sums;
};
} // namespace

static constexpr ProgramType programTypes[] = {
    {"f32", ElementType::F32, ElementType::F32, ElementType::F32},
    {"tf32", ElementType::F32, ElementType::TF32, ElementType::F32},
    {"f16", ElementType::F16, ElementType::F16, ElementType::F32},
    {"bf16", ElementType::BF16, ElementType::BF16, ElementType::F32},
    {"i8", ElementType::I8, ElementType::I8, ElementType::I32},
};

/// Reads the fields of a record from the values at `next`, and moves it on.
template <typename Record, size_t N>
static void readFields(const Field<Record> (&fields)[N], const double *&next,
                       Record &record) {
  for (const Field<Record> &field : fields)
    field.read(record, *next++);
}

template <typename Record, size_t N>
static Record readRecord(const Field<Record> (&fields)[N],
                         const double *values) {
  Record record;
  readFields(fields, values, record);
  return record;
}

/// Writes the fields of a record to the values at `next`, and moves it on.
template <typename Record, size_t N>
static void writeFields(const Field<Record> (&fields)[N], const Record &record,
                        double *&next) {
  for (const Field<Record> &field : fields)
    *next++ = field.write(record);
}

template <typename Record, size_t N>
static void writeRecord(const Field<Record> (&fields)[N], const Record &record,
                        double *values) {
  writeFields(fields, record, values);
}

static LatencyKernel readKernel(const double *&next) {
  bool isStreaming = *next++ != 0;
  LatencyLoop loop;
  LatencyStream stream;
  LatencyBlock &block =
      isStreaming ? static_cast<LatencyBlock &>(stream) : loop;
  readFields(blockFields, next, block);
  readFields(loopFields, next, loop);
  readFields(streamFields, next, stream);
  stream.rowLoop = std::max(stream.rowLoop, 1.0);
  if (isStreaming)
    return stream;
  return loop;
}

/// The fields of the other kind are those of a kernel that has nothing of it.
static void writeKernel(const LatencyKernel &kernel, double *&next) {
  const auto *loop = std::get_if<LatencyLoop>(&kernel);
  const auto *stream = std::get_if<LatencyStream>(&kernel);
  *next++ = stream != nullptr;
  writeFields(blockFields, commonBlock(kernel), next);
  writeFields(loopFields, loop ? *loop : LatencyLoop(), next);
  writeFields(streamFields, stream ? *stream : LatencyStream(), next);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static void copyText(llvm::StringRef text, char *buffer, size_t bytes) {
  if (!buffer || bytes == 0)
    return;
  size_t length = std::min(text.size(), bytes - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = 0;
}

static int fail(const llvm::Twine &message, char *error, size_t errorBytes) {
  copyText(message.str(), error, errorBytes);
  return 1;
}

static int fail(llvm::Error failure, char *error, size_t errorBytes) {
  return fail(llvm::toString(std::move(failure)), error, errorBytes);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

int ftuner_latency_abi(void) { return FTUNER_LATENCY_ABI; }

const char *ftuner_latency_field(const char *record, size_t index) {
  const Record *fields = findRecord(record);
  return fields && index < fields->size() ? (*fields)[index].name : nullptr;
}

int ftuner_latency_field_default(const char *record, size_t index,
                                 double *value) {
  const Record *fields = findRecord(record);
  if (!fields || index >= fields->size())
    return -1;
  *value = (*fields)[index].value;
  return (*fields)[index].isOptional;
}

const char *ftuner_latency_path(size_t index) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> names;
    for (const CodegenModel *path : codegenModels())
      names.push_back(path->name().str());
    return names;
  }();
  return index < names.size() ? names[index].c_str() : nullptr;
}

const char *ftuner_latency_program_type(size_t index) {
  return index < std::size(programTypes) ? programTypes[index].name : nullptr;
}

const char *ftuner_latency_program_field(const char *path, size_t index) {
  const CodegenModel *model = findCodegenModel(path);
  if (!model)
    return nullptr;
  if (index < std::size(programFields))
    return programFields[index].name;
  index -= std::size(programFields);
  llvm::ArrayRef<ScheduleField> fields = model->scheduleFields();
  return index < fields.size() ? fields[index].name.data() : nullptr;
}

int ftuner_latency_program_default(const char *path, size_t index) {
  const CodegenModel *model = findCodegenModel(path);
  if (!model || index < std::size(programFields))
    return -1;
  index -= std::size(programFields);
  llvm::ArrayRef<ScheduleField> fields = model->scheduleFields();
  if (index >= fields.size() || !fields[index].isOptional)
    return -1;
  return static_cast<int>(fields[index].otherwise);
}

int ftuner_latency_constant(size_t index, const char **unit, const char **text,
                            double *start, double *low, double *high) {
  struct Constant {
    const char *unit, *text;
    double start, low, high;
  };
  static const Constant constants[] = {
#define FTUNER_LATENCY_CONSTANT(MEMBER, NAME, UNIT, VALUE, LOW, HIGH, TEXT)    \
  {UNIT, TEXT, VALUE, LOW, HIGH},
#include "FTuner/CostModel/LatencyConstants.def"
  };
  if (index >= std::size(constants))
    return 1;
  const Constant &constant = constants[index];
  *unit = constant.unit;
  *text = constant.text;
  *start = constant.start;
  *low = constant.low;
  *high = constant.high;
  return 0;
}

int ftuner_latency_device(const char *nameOrPath, double *device, char *name,
                          size_t nameBytes, char *error, size_t errorBytes) {
  llvm::Expected<DeviceSpec> spec = loadDeviceSpec(nameOrPath);
  if (!spec)
    return fail(spec.takeError(), error, errorBytes);
  writeRecord(deviceFields, latencyDevice(*spec), device);
  copyText(spec->name, name, nameBytes);
  return 0;
}

int ftuner_latency_calibration(const char *nameOrPath, double *constants,
                               double *deviation, char *error,
                               size_t errorBytes) {
  llvm::Expected<Calibration> calibration = loadCalibration(nameOrPath);
  if (!calibration)
    return fail(calibration.takeError(), error, errorBytes);
  writeRecord(constantFields, calibration->constants, constants);
  *deviation = calibration->deviation;
  return 0;
}

int ftuner_latency_default_calibration(const char *device, double *constants,
                                       double *deviation, char *error,
                                       size_t errorBytes) {
  llvm::Expected<DeviceSpec> spec = loadDeviceSpec(device);
  if (!spec)
    return fail(spec.takeError(), error, errorBytes);
  Calibration calibration = defaultCalibration(*spec);
  writeRecord(constantFields, calibration.constants, constants);
  *deviation = calibration.deviation;
  return 0;
}

/// Reads the parts of a row that have blocks. Returns their number.
static unsigned readParts(const double *next, size_t partsOfRow,
                          const LatencyDevice &device,
                          const LatencyConstants &constants,
                          LatencyTable *tables, LatencyPart *parts) {
  unsigned numParts = 0;
  for (size_t i = 0; i < partsOfRow; ++i) {
    LatencyKernel kernel = readKernel(next);
    LatencyPart &part = parts[numParts];
    readFields(countFields, next, part);
    if (part.count <= 0)
      continue;
    tables[numParts] = tabulate(device, kernel, constants);
    part.table = &tables[numParts++];
  }
  return numParts;
}

int ftuner_latency_predict(const double *devices, size_t numDevices,
                           const int64_t *deviceOfRow, const double *parts,
                           size_t partsOfRow, const double *grids,
                           size_t numRows, const double *constants,
                           double *microseconds, double *terms, char *error,
                           size_t errorBytes) {
  if (partsOfRow != 1 && partsOfRow != 2)
    return fail("expected 1 or 2 parts, but got " + llvm::Twine(partsOfRow),
                error, errorBytes);
  std::vector<LatencyDevice> readDevices;
  for (size_t i = 0; i < numDevices; ++i)
    readDevices.push_back(
        readRecord(deviceFields, devices + i * std::size(deviceFields)));
  LatencyConstants readConstants = readRecord(constantFields, constants);
  for (size_t row = 0; row < numRows; ++row) {
    if (deviceOfRow[row] < 0 ||
        static_cast<size_t>(deviceOfRow[row]) >= numDevices)
      return fail("row " + llvm::Twine(row) + ": expected a device below " +
                      llvm::Twine(numDevices) + ", but got " +
                      llvm::Twine(deviceOfRow[row]),
                  error, errorBytes);
    const LatencyDevice &device = readDevices[deviceOfRow[row]];
    LatencyTable tables[2];
    LatencyPart rowParts[2];
    unsigned numParts =
        readParts(parts + row * partsOfRow * partSize, partsOfRow, device,
                  readConstants, tables, rowParts);
    if (numParts == 2 && tables[0].index() != tables[1].index())
      return fail("row " + llvm::Twine(row) +
                      ": expected parts that are both streaming, or neither",
                  error, errorBytes);
    // Nothing is launched, and nothing is waited for.
    if (numParts == 0) {
      microseconds[row] = 0;
      if (terms)
        std::fill_n(terms + row * std::size(termFields), std::size(termFields),
                    0.0);
      continue;
    }
    LatencyGrid grid =
        readRecord(gridFields, grids + row * std::size(gridFields));
    microseconds[row] =
        predictLatency(device, rowParts, numParts, grid, readConstants);
    if (terms)
      writeRecord(
          termFields,
          explainLatency(device, rowParts, numParts, grid, readConstants),
          terms + row * std::size(termFields));
  }
  return 0;
}

/// The product of a row: its result has the elements of its factors, or, of
/// integers, the sums.
static Workload productOf(const ProgramRow &row) {
  const ProgramType &type = programTypes[row.type];
  SizeRange m = SizeRange::fixed(row.m), n = SizeRange::fixed(row.n),
            k = SizeRange::fixed(row.k);
  Workload workload =
      row.batch > 1
          ? Workload::batchMatmul(SizeRange::fixed(row.batch), m, n, k,
                                  row.transposeLhs, row.transposeRhs)
          : Workload::matmul(m, n, k, row.transposeLhs, row.transposeRhs);
  for (Operand &operand : workload.operands) {
    bool isSum = operand.role == OperandRole::Output && isInteger(type.sums);
    operand =
        Operand(operand.role, operand.axes, isSum ? type.sums : type.elements);
  }
  changeContraction(workload, [&](ContractionParts &parts) {
    parts.multipliedType = type.multiplied;
    parts.accumulatorType = type.sums;
  });
  return workload;
}

static KernelFamily familyOf(const ProgramRow &row, const Schedule &schedule,
                             size_t numAxes) {
  KernelFamily family;
  family.schedule = schedule;
  family.combineAxis = matmulAxes.space(row.combineAxis == 0 ? 0 : 1);
  family.reduceSplit = row.reduceSplit;
  BlockTile first = {row.blockM, row.blockN, row.blockK};
  first.resize(numAxes, 1);
  family.tiles.push_back(first);
  if (row.secondBlock > 0) {
    BlockTile &second = family.tiles.emplace_back(first);
    second[family.combineAxis] = row.secondBlock;
  }
  return family;
}

static llvm::Error checkField(llvm::StringRef name, int64_t value,
                              int64_t min) {
  if (value >= min && value <= maxExtent)
    return llvm::Error::success();
  return llvm::createStringError(
      name + ": expected a number from " + llvm::Twine(min) + " to " +
      llvm::Twine(maxExtent) + ", but got " + llvm::Twine(value));
}

/// Reads a record of a program: its row and its path's schedule.
static llvm::Error readProgram(const CodegenModel &path, const int64_t *values,
                               ProgramRow &row, Schedule &schedule) {
  for (const ProgramField &field : programFields) {
    if (llvm::Error error = checkField(field.name, *values, field.min))
      return error;
    row.*field.number = *values++;
  }
  if (static_cast<size_t>(row.type) >= std::size(programTypes))
    return llvm::createStringError("type: expected a number below " +
                                   llvm::Twine(std::size(programTypes)) +
                                   ", but got " + llvm::Twine(row.type));
  llvm::ArrayRef<int64_t> fields(values, path.scheduleFields().size());
  if (llvm::Error error = checkFields(path, fields))
    return error;
  schedule = Schedule(path, fields);
  return llvm::Error::success();
}

namespace {
/// A product of a row, and the program that computes it.
struct RowProgram {
  Workload workload;
  Shape shape;
  KernelFamily family;
  Partition partition;

  Program program() const { return {&family, partition}; }
};
} // namespace

static llvm::Expected<RowProgram> programOf(const CodegenModel &path,
                                            const int64_t *values,
                                            const DeviceSpec &device) {
  ProgramRow row;
  Schedule schedule;
  if (llvm::Error error = readProgram(path, values, row, schedule))
    return error;
  RowProgram result;
  result.workload = productOf(row);
  const Workload &workload = result.workload;
  if (llvm::Error error = workload.check())
    return error;
  Shape &shape = result.shape = {row.m, row.n, row.k};
  if (row.batch > 1)
    shape.push_back(row.batch);
  // As the dispatch does: shapes that break the alignment run with narrower
  // accesses.
  KernelFamily &family = result.family =
      path.relaxed(familyOf(row, schedule, workload.axes.size()),
                   alignmentOf(workload, shape));
  if (llvm::Error error = checkTiles(workload, family))
    return error;
  if (llvm::Error error = path.check(workload, family, device))
    return error;

  Partition &partition =
      result.partition = {row.firstCount, row.secondCount, 0};
  if (partition.blocks() == 0)
    partition = partitionShape(family, shape);
  int64_t covered = 0;
  int64_t counts[] = {partition.first, partition.second};
  for (unsigned part = 0; part < family.tiles.size(); ++part)
    covered += family.height(part) * counts[part];
  if (covered < shape[family.combineAxis] ||
      (family.tiles.size() == 1 && partition.second > 0))
    return llvm::createStringError("expected blocks that cover the extent");
  return result;
}

static void describe(const RowProgram &row, const DeviceSpec &device,
                     double *parts, double *grid) {
  LatencyLaunch launch =
      describeLaunch(row.workload, row.shape, row.program(), device);
  std::fill_n(parts, 2 * partSize, 0.0);
  for (unsigned i = 0; i < launch.numParts; ++i) {
    // Parts without blocks come first.
    double *part = parts + (2 - launch.numParts + i) * partSize;
    writeKernel(launch.blocks[i], part);
    writeRecord(countFields,
                LatencyPart{nullptr, launch.counts[i], launch.steps[i]}, part);
  }
  writeRecord(gridFields, launch.grid, grid);
}

/// Visits the programs of all rows. Returns 0, or another number after writing
/// which row was wrong.
static int
forEachProgram(const char *device, const char *path, const int64_t *programs,
               size_t numRows, char *error, size_t errorBytes,
               llvm::function_ref<llvm::Error(size_t, const RowProgram &,
                                              const DeviceSpec &)>
                   visit) {
  llvm::Expected<DeviceSpec> spec = loadDeviceSpec(device);
  if (!spec)
    return fail(spec.takeError(), error, errorBytes);
  const CodegenModel *model = findCodegenModel(path);
  if (!model)
    return fail("unknown codegen path '" + llvm::Twine(path) +
                    "': expected one of " + codegenModelNames(),
                error, errorBytes);
  size_t programSize =
      std::size(programFields) + model->scheduleFields().size();
  for (size_t i = 0; i < numRows; ++i) {
    llvm::Expected<RowProgram> row =
        programOf(*model, programs + i * programSize, *spec);
    llvm::Error failure = row ? visit(i, *row, *spec) : row.takeError();
    if (failure)
      return fail("row " + llvm::Twine(i) + ": " +
                      llvm::toString(std::move(failure)),
                  error, errorBytes);
  }
  return 0;
}

int ftuner_latency_programs(const char *device, const char *path,
                            const int64_t *programs, size_t numRows,
                            double *parts, double *grids, char *error,
                            size_t errorBytes) {
  return forEachProgram(
      device, path, programs, numRows, error, errorBytes,
      [&](size_t i, const RowProgram &row, const DeviceSpec &spec) {
        describe(row, spec, parts + i * 2 * partSize,
                 grids + i * std::size(gridFields));
        return llvm::Error::success();
      });
}

const char *ftuner_latency_program_feature(size_t index) {
  static const std::vector<std::string> names = programFeatureNames();
  return index < names.size() ? names[index].c_str() : nullptr;
}

static constexpr const char *kBothOrNeither =
    "expected ordering and features, or neither";

int ftuner_latency_program_trees(const char *device, const char *path,
                                 const int64_t *programs, size_t numRows,
                                 double *blocks, int64_t *statements,
                                 int64_t *ordering, float *features,
                                 size_t capacity, char *error,
                                 size_t errorBytes) {
  if (!ordering != !features)
    return fail(kBothOrNeither, error, errorBytes);
  size_t written = 0;
  return forEachProgram(
      device, path, programs, numRows, error, errorBytes,
      [&](size_t i, const RowProgram &row,
          const DeviceSpec &spec) -> llvm::Error {
        std::fill_n(blocks + 2 * i, 2, 0.0);
        std::fill_n(statements + 2 * i, 2, 0);
        for (const PartAst &part :
             describeProgram(row.workload, row.program(), row.shape, spec)) {
          auto places = part.ast.ordering();
          blocks[2 * i + part.part] = part.blocks;
          statements[2 * i + part.part] = static_cast<int64_t>(places.size());
          if (!ordering)
            continue;
          if (places.size() > capacity - written)
            return llvm::createStringError("expected room for more than " +
                                           llvm::Twine(capacity) +
                                           " statements");
          std::copy(places.begin(), places.end(), ordering + written);
          for (const ProgramFeatures &statement : programFeatures(part.ast))
            std::copy(statement.begin(), statement.end(),
                      features + kNumProgramFeatures * written++);
        }
        return llvm::Error::success();
      });
}

int ftuner_latency_json_trees(const char *json, const double *values,
                              size_t numColumns, size_t numRows,
                              int64_t *statements, int64_t *ordering,
                              float *features, size_t capacity, char *error,
                              size_t errorBytes) {
  if (!ordering != !features)
    return fail(kBothOrNeither, error, errorBytes);
  llvm::Expected<AstTemplate> read = AstTemplate::parse(json, numColumns);
  if (!read)
    return fail(read.takeError(), error, errorBytes);
  auto places = read->ast().ordering();
  size_t count = places.size();
  *statements = static_cast<int64_t>(count);
  if (!ordering)
    return 0;
  if (count > capacity)
    return fail("expected room for " + llvm::Twine(count) + " statements",
                error, errorBytes);
  std::copy(places.begin(), places.end(), ordering);
  for (size_t i = 0; i < numRows; ++i) {
    if (llvm::Error failure =
            read->bind(llvm::ArrayRef(values + i * numColumns, numColumns)))
      return fail("row " + llvm::Twine(i) + ": " +
                      llvm::toString(std::move(failure)),
                  error, errorBytes);
    for (auto [statement, found] :
         llvm::enumerate(programFeatures(read->ast()))) {
      if (!llvm::all_of(found,
                        [](float value) { return std::isfinite(value); }))
        return fail("row " + llvm::Twine(i) + ": statements[" +
                        llvm::Twine(statement) +
                        "]: expected features that are numbers, but some are "
                        "infinite or none",
                    error, errorBytes);
      std::copy(found.begin(), found.end(), features);
      features += kNumProgramFeatures;
    }
  }
  return 0;
}

int ftuner_latency_learned(const char *predictor, const char *device,
                           const char *path, const int64_t *programs,
                           size_t numRows, double *values, int *corrects,
                           char *error, size_t errorBytes) {
  llvm::Expected<std::shared_ptr<const Predictor>> loaded =
      loadPredictor(predictor);
  if (!loaded)
    return fail(loaded.takeError(), error, errorBytes);
  *corrects = (*loaded)->corrects();
  std::vector<PredictorProgram> known;
  std::vector<size_t> rows;
  std::vector<float> figures;
  int code = forEachProgram(
      device, path, programs, numRows, error, errorBytes,
      [&](size_t i, const RowProgram &row, const DeviceSpec &spec) {
        if (figures.empty())
          figures = (*loaded)->encodeDevice(latencyDevice(spec));
        values[i] = -1;
        PredictorProgram program =
            predictorProgram(row.workload, row.program(), row.shape, spec);
        if ((*loaded)->unknownIn(program).empty()) {
          known.push_back(std::move(program));
          rows.push_back(i);
        }
        return llvm::Error::success();
      });
  if (code != 0)
    return code;
  std::vector<const PredictorProgram *> pointers;
  for (const PredictorProgram &program : known)
    pointers.push_back(&program);
  std::vector<double> found(known.size());
  (*loaded)->predict(pointers, figures, found);
  for (size_t i = 0; i < rows.size(); ++i)
    if (std::isfinite(found[i]))
      values[rows[i]] = found[i];
  return 0;
}

int ftuner_latency_accesses(const int64_t *addresses, const int64_t *widths,
                            size_t numAccesses, int32_t *wavefrontsOf,
                            int32_t *linesOf, char *error, size_t errorBytes) {
  for (size_t i = 0; i < numAccesses; ++i) {
    if (widths[i] != 1 && widths[i] != 2 && widths[i] != 4)
      return fail("access " + llvm::Twine(i) +
                      ": expected 1, 2 or 4 words for each lane, but got " +
                      llvm::Twine(widths[i]),
                  error, errorBytes);
    std::array<int64_t, 32> address;
    std::copy_n(addresses + 32 * i, 32, address.begin());
    if (wavefrontsOf)
      wavefrontsOf[i] = wavefronts(address, widths[i]);
    if (linesOf)
      linesOf[i] = globalLines(address, widths[i]);
  }
  return 0;
}
