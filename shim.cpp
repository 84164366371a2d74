
#include "FTuner/CostModel/LatencyFormulas.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>
#include <fstream>
using namespace ftuner;
namespace {
/// A member of a record: a number, or a truth that is 0 or 1.
template <typename Record>
struct Field {
  const char *name;
  double Record::*number = nullptr;
  bool Record::*truth = nullptr;

  constexpr Field(const char *name, double Record::*number)
      : name(name), number(number) {}
  constexpr Field(const char *name, bool Record::*truth)
      : name(name), truth(truth) {}

  void read(Record &record, double value) const {
    if (number)
      record.*number = value;
    else
      record.*truth = value != 0;
  }
  double write(const Record &record) const {
    return number ? record.*number : record.*truth;
  }
};
} // namespace

static constexpr Field<LatencyDevice> deviceFields[] = {
    {"sm_count", &LatencyDevice::smCount},
    {"clock_mhz", &LatencyDevice::clockMhz},
    {"fp32_lanes", &LatencyDevice::fp32Lanes},
    {"warp_schedulers", &LatencyDevice::warpSchedulers},
    {"issue_slots", &LatencyDevice::issueSlots},
    {"half_block_run", &LatencyDevice::halfBlockRun},
    {"load_store_lanes", &LatencyDevice::loadStoreLanes},
    {"tf32_rate", &LatencyDevice::tf32Rate},
    {"f16_rate", &LatencyDevice::f16Rate},
    {"i8_rate", &LatencyDevice::i8Rate},
    {"warp_tensor_share", &LatencyDevice::warpTensorShare},
    {"dram_gbps", &LatencyDevice::dramGbps},
    {"l2_bytes", &LatencyDevice::l2Bytes},
    {"shared_memory_per_sm_bytes", &LatencyDevice::sharedMemoryPerSmBytes},
    {"max_threads_per_sm", &LatencyDevice::maxThreadsPerSm},
    {"max_blocks_per_sm", &LatencyDevice::maxBlocksPerSm},
    {"registers_per_sm", &LatencyDevice::registersPerSm},
    {"board_power_watts", &LatencyDevice::boardPowerWatts},
    {"node_efficiency", &LatencyDevice::nodeEfficiency},
};

static constexpr Field<LatencyBlock> blockFields[] = {
    {"warps", &LatencyBlock::warps},
    {"registers_per_thread", &LatencyBlock::registersPerThread},
    {"shared_memory_bytes", &LatencyBlock::sharedMemoryBytes},
    {"step_depth", &LatencyBlock::stepDepth},
    {"fma", &LatencyBlock::fma},
    {"tensor_instructions", &LatencyBlock::tensorInstructions},
    {"tf32_operations", &LatencyBlock::tf32Operations},
    {"f16_operations", &LatencyBlock::f16Operations},
    {"i8_operations", &LatencyBlock::i8Operations},
    {"is_warpgroup", &LatencyBlock::isWarpgroup},
    {"is_persistent", &LatencyBlock::isPersistent},
    {"hides_stores", &LatencyBlock::hidesStores},
    {"cluster_cycles", &LatencyBlock::clusterCycles},
    {"other_instructions", &LatencyBlock::otherInstructions},
    {"loaded_registers", &LatencyBlock::loadedRegisters},
    {"shared_cycles", &LatencyBlock::sharedCycles},
    {"global_lines", &LatencyBlock::globalLines},
    {"l2_bytes", &LatencyBlock::l2Bytes},
    {"is_pipelined", &LatencyBlock::isPipelined},
    {"exposed_loads", &LatencyBlock::exposedLoads},
    {"direct_registers", &LatencyBlock::directRegisters},
    {"spilled_registers", &LatencyBlock::spilledRegisters},
};

/// A part is a block and these.
static constexpr Field<LatencyPart> partFields[] = {
    {"count", &LatencyPart::count},
    {"steps", &LatencyPart::steps},
};

static constexpr Field<LatencyGrid> gridFields[] = {
    {"blocks_x", &LatencyGrid::blocksX},
    {"blocks_y", &LatencyGrid::blocksY},
    {"tile_x", &LatencyGrid::tileX},
    {"tile_y", &LatencyGrid::tileY},
    {"is_swizzled", &LatencyGrid::isSwizzled},
    {"problems", &LatencyGrid::problems},
    {"lhs_bytes", &LatencyGrid::lhsBytes},
    {"rhs_bytes", &LatencyGrid::rhsBytes},
    {"output_bytes", &LatencyGrid::outputBytes},
    {"is_output_aligned", &LatencyGrid::isOutputAligned},
    {"lhs_run_bytes", &LatencyGrid::lhsRunBytes},
    {"rhs_run_bytes", &LatencyGrid::rhsRunBytes},
    {"reduce_length", &LatencyGrid::reduceLength},
    {"element_bytes", &LatencyGrid::elementBytes},
    {"second_kernels", &LatencyGrid::secondKernels},
    {"sum_bytes", &LatencyGrid::sumBytes},
};

static constexpr Field<LatencyConstants> constantFields[] = {
#define FTUNER_LATENCY_CONSTANT(MEMBER, NAME, UNIT, VALUE, LOW, HIGH, TEXT)    \
  {NAME, &LatencyConstants::MEMBER},
#include "FTuner/CostModel/LatencyConstants.def"
};

static constexpr Field<LatencyPrediction> termFields[] = {
    {"total", &LatencyPrediction::total},
    {"launch", &LatencyPrediction::launch},
    {"issue", &LatencyPrediction::issue},
    {"shared_memory", &LatencyPrediction::sharedMemory},
    {"l2", &LatencyPrediction::l2},
    {"latency", &LatencyPrediction::latency},
    {"block_start", &LatencyPrediction::blockStart},
    {"tail", &LatencyPrediction::tail},
    {"dram", &LatencyPrediction::dram},
    {"power", &LatencyPrediction::power},
    {"second_kernel", &LatencyPrediction::secondKernel},
    {"resident_blocks", &LatencyPrediction::residentBlocks},
    {"scheduler_imbalance", &LatencyPrediction::schedulerImbalance},
    {"waves", &LatencyPrediction::waves},
    {"dram_bytes", &LatencyPrediction::dramBytes},
    {"sm_time", &LatencyPrediction::smTime},
    {"dram_time", &LatencyPrediction::dramTime},
    {"power_time", &LatencyPrediction::powerTime},
};

template <typename Record, size_t N>
static Record readRecord(const Field<Record> (&fields)[N],
                         const double *values) {
  Record record;
  for (size_t i = 0; i < N; ++i)
    fields[i].read(record, values[i]);
  return record;
}

template <typename Record, size_t N>
static void writeRecord(const Field<Record> (&fields)[N], const Record &record,
                        double *values) {
  for (size_t i = 0; i < N; ++i)
    values[i] = fields[i].write(record);
}

template <typename Record, size_t N>
static const char *fieldName(const Field<Record> (&fields)[N], size_t index) {
  return index < N ? fields[index].name : nullptr;
}


extern "C" {
int ftuner_latency_abi(void){return 3;}
const char*ftuner_latency_path(size_t i){return i==0?"mma":nullptr;}
const char*ftuner_latency_program_field(const char*,size_t){return nullptr;}
const char *ftuner_latency_field(const char *record, size_t index) {
  std::string name(record);
  if (name == "device") return fieldName(deviceFields, index);
  if (name == "part") return index < std::size(blockFields) ? blockFields[index].name : fieldName(partFields, index - std::size(blockFields));
  if (name == "grid") return fieldName(gridFields, index);
  if (name == "constants") return fieldName(constantFields, index);
  if (name == "terms") return fieldName(termFields, index);
  return nullptr;
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


static int flat(std::string kind,const char*n,double*v,size_t count,char*error){
  std::string s(n); auto p=s.rfind('/'); if(p!=std::string::npos) s=s.substr(p+1); p=s.rfind(".json"); if(p!=std::string::npos) s=s.substr(0,p);
  std::ifstream in("/tmp/ex/flat/"+kind+"_"+s); if(!in){strcpy(error,"no such");return 1;}
  for(size_t i=0;i<count;++i){std::string t;in>>t;v[i]=std::stod(t);} return 0;}
int ftuner_latency_device(const char*n,double*d,char*name,size_t,char*error,size_t){
  std::string s(n); auto p=s.rfind('/'); if(p!=std::string::npos) s=s.substr(p+1); p=s.rfind(".json"); if(p!=std::string::npos) s=s.substr(0,p);
  strcpy(name,s.c_str()); return flat("device",n,d,std::size(deviceFields),error);}
int ftuner_latency_calibration(const char*n,double*d,double*dev,char*error,size_t){*dev=0.08;return flat("calibration",n,d,std::size(constantFields),error);}
int ftuner_latency_default_calibration(const char*n,double*d,double*dev,char*error,size_t){*dev=0.08;return flat("default",n,d,std::size(constantFields),error);}
}
/// Reads the parts of a row that have blocks. Returns their number.
static unsigned readParts(const double *values, size_t partsOfRow,
                          const LatencyDevice &device,
                          const LatencyConstants &constants,
                          LatencyTable *tables, LatencyPart *parts) {
  unsigned numParts = 0;
  for (size_t i = 0; i < partsOfRow; ++i) {
    const double *rest = values + std::size(blockFields);
    LatencyPart part = readRecord(partFields, rest);
    if (part.count > 0) {
      tables[numParts] =
          tabulate(device, readRecord(blockFields, values), constants);
      part.table = &tables[numParts];
      parts[numParts++] = part;
    }
    values = rest + std::size(partFields);
  }
  return numParts;
}


extern "C" int ftuner_latency_predict(const double *devices, size_t numDevices,
                           const int64_t *deviceOfRow, const double *parts,
                           size_t partsOfRow, const double *grids,
                           size_t numRows, const double *constants,
                           double *microseconds, double *terms, char *error,
                           size_t errorBytes) {
  std::vector<LatencyDevice> rd; for(size_t i=0;i<numDevices;++i) rd.push_back(readRecord(deviceFields,devices+i*std::size(deviceFields)));
  LatencyConstants rc=readRecord(constantFields,constants);
  size_t ps=std::size(blockFields)+std::size(partFields);
  for(size_t row=0;row<numRows;++row){const LatencyDevice&device=rd[deviceOfRow[row]];LatencyTable tables[2];LatencyPart rp[2];
   unsigned n=readParts(parts+row*partsOfRow*ps,partsOfRow,device,rc,tables,rp);
   if(!n){strcpy(error,"no parts");return 1;}
   LatencyGrid grid=readRecord(gridFields,grids+row*std::size(gridFields));
   microseconds[row]=predictLatency(device,rp,n,grid,rc);
   if(terms) writeRecord(termFields,explainLatency(device,rp,n,grid,rc),terms+row*std::size(termFields));}
  return 0;}
