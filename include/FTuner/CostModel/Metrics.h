//===- Metrics.h - Padding, occupancy and compute-to-memory -----*- C++ -*-===//
//
// Equations 2, 3, 6 and 7 of the paper, for one uKernel over a whole shape, and
// for the real partition of a two-uKernel program.
//
// For C[M,N] = A[M,K] · B[K,N], block tile bm × bn × bk, register tile rm × rn
// of each of the block's workers (threads on CUDA cores), the peak of the pipes
// that the codegen path computes with, b bytes per element, gridM = ceil(M /
// bm), gridN = ceil(N / bn):
//
//   (2)  Pad     = product over axes of extent / ceil_by(extent, tile)
//   (3)  Occ     = blocks / ceil_by(blocks, SMs)
//   (6)  CMR     = (FLOPs / peak FLOP/s) / K_mem
//   (7)  K_mem   = max((data_R + data_W) / bw_G, (trans_W + trans_R) / bw_S)
//
//     blocks  = gridM · gridN · split
//     data_R  = gridN · |A| + gridM · |B| + the other operands once
//     data_W  = |C| · split
//     trans_W = blocks · (bm + bn) · (K / split) · b
//     trans_R = blocks · workers · (rm + rn) · (K / split) · b
//     bw_S    = SMs · clock · 128 B
//
// With `Bandwidths::Measured` peak, bw_G and bw_S are what was measured on the
// device.
//
// The paper counts bytes for Pad and leaves data and trans open; these readings
// count points of the iteration space and the traffic of a tiled product. A
// program of two uKernels adds the traffic of its parts over their own rows, so
// an exact partition has no padding on its combine axis.
//
// Example: M = 53, bm = 8 pads to 56 rows, Pad = 53/56; 53 = 3·7 + 4·8 has
// Pad 1 with the same 7 blocks.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_COSTMODEL_METRICS_H
#define FTUNER_COSTMODEL_METRICS_H

#include "FTuner/CostModel/MetricOptions.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Workload.h"

namespace ftuner {

/// Most blocks that are told apart: far more than any grid, and few enough to
/// be multiplied by threads or SMs in 64 bits.
constexpr int64_t maxBlocks = int64_t{1} << 48;

struct Metrics {
  /// useful / (padded + useful) iteration points (equation 2), in (0, 1].
  double pad = 0;
  /// blocks / ceil_by(blocks, SMs) (equation 3), in (0, 1].
  double occ = 0;
  /// compute time at peak over memory time (equations 6 and 7), above 0.
  double cmr = 0;
  /// Thread blocks, at most `maxBlocks`.
  int64_t blocks = 0;
};

/// Rates by which equations 6 and 7 divide. The device outlives the object.
class MetricRates {
public:
  MetricRates(const DeviceSpec &device, MetricOptions options);

  /// Returns the peak of the pipes that a path computes with. Only the peak of
  /// f32 on CUDA cores can be a measured one.
  double flopsPerSecond(const CodegenModel &path,
                        const Workload &workload) const {
    return path.peakFlops(workload, measured ? *measured : device);
  }
  double globalBytesPerSecond = 0;
  double sharedBytesPerSecond = 0;

private:
  const DeviceSpec &device;
  /// The device with measured rates in place of its peaks.
  std::optional<DeviceSpec> measured;
};

/// Returns the metrics of a part of a family that covers the whole shape by
/// itself.
Metrics ukernelMetrics(const Workload &workload, llvm::ArrayRef<int64_t> shape,
                       const KernelFamily &family, unsigned part,
                       const DeviceSpec &device, MetricOptions options = {});

/// Returns the metrics of the program's real partition: each part over its own
/// rows.
Metrics programMetrics(const Workload &workload, llvm::ArrayRef<int64_t> shape,
                       const Program &program, const DeviceSpec &device,
                       MetricOptions options = {});

/// Computes `ukernelMetrics` and `programMetrics` of many uKernels and programs
/// over one shape: terms that depend only on the shape are computed once. Every
/// extent is at least 1; workload and device outlive the object.
class ShapeMetrics {
public:
  ShapeMetrics(const Workload &workload, llvm::ArrayRef<int64_t> shape,
               const DeviceSpec &device, MetricOptions options = {});

  /// Returns the metrics of a part of a family that covers the whole shape by
  /// itself.
  Metrics ukernel(const KernelFamily &family, unsigned part) const;
  Metrics program(const Program &program) const;

private:
  /// Traffic in bytes and counts that add up over the parts of a program.
  struct Totals {
    double points = 0;
    double blocks = 0;
    double globalBytes = 0;
    double sharedBytes = 0;
  };
  /// Adds `count` tiles of a part along the combine axis that hold `rows` of
  /// its extent; the other axes are covered whole.
  void add(Totals &totals, const KernelFamily &family, unsigned part,
           int64_t count, int64_t rows) const;
  Metrics finish(const Totals &totals, const CodegenModel &path) const;

  const Workload &workload;
  MetricRates rates;
  Shape shape;
  double usefulPoints = 0;
  double flops = 0;
  double smCount = 1;
};

/// Metrics of many uKernels of one codegen path for one shape after another of
/// a contraction. Blocks and padding of a tile size along an axis are computed
/// once, so a uKernel costs a few operations for each shape.
/// Workload and device outlive the object.
class FactoredMetrics {
public:
  FactoredMetrics(const Workload &workload, const DeviceSpec &device,
                  const CodegenModel &path, llvm::ArrayRef<UKernel> ukernels,
                  MetricOptions options = {});

  /// Metrics of every uKernel for a shape (every extent ≥ 1), in their order.
  void evaluate(llvm::ArrayRef<int64_t> shape,
                std::vector<Metrics> &result) const;

private:
  /// One uKernel: numbers of its tiles along M, N, K and the batch axes, and
  /// what it moves through shared memory for each element of the reduce axis,
  /// in bytes.
  struct Entry {
    unsigned m, n, k, batch;
    double sharedBytes;
  };
  /// A tile along the reduce axis, in each of `split` split-K slices.
  struct ReduceTile {
    int64_t size, split;
    bool operator==(const ReduceTile &other) const {
      return size == other.size && split == other.split;
    }
  };

  const Workload &workload;
  const DeviceSpec &device;
  const CodegenModel &path;
  MetricRates rates;
  ContractionAxes axes;
  std::vector<int64_t> tilesM, tilesN;
  std::vector<ReduceTile> tilesK;
  /// Batch tiles, with 1 along axes that are not batch axes.
  std::vector<BlockTile> batchTiles;
  std::vector<Entry> entries;
};

} // namespace ftuner

#endif // FTUNER_COSTMODEL_METRICS_H
