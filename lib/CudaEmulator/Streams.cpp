//===- Streams.cpp - Streams, events and graphs of the CUDA driver --------===//
//
// Source of names and parameters: cuda.h of CUDA 12.
//
//===----------------------------------------------------------------------===//
#include "Capture.h"
#include "Results.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

using namespace ftuner;

namespace {
constexpr unsigned kNonBlocking = 1; // CUstream_flags
/// CUgraphInstantiate_flags: launches from the device, which there are none of.
constexpr uint64_t kDeviceLaunch = 4, kInstantiateFlags = 15;

/// A graph that was instantiated. Its nodes are copies.
struct Executable {
  std::shared_ptr<const Graph> graph;
};
} // namespace

extern "C" {

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

CUresult cuStreamCreate(void **result, unsigned flags) {
  if (!result || flags > kNonBlocking)
    return kInvalidValue;
  auto *stream = new Stream;
  stream->isBlocking = flags != kNonBlocking;
  *result = stream;
  return kSuccess;
}
CUresult cuStreamDestroy(void *stream) {
  if (CUresult error = refuseDestroy(stream))
    return error;
  delete static_cast<Stream *>(stream);
  return kSuccess;
}
CUresult cuStreamDestroy_v2(void *stream) { return cuStreamDestroy(stream); }
CUresult cuStreamSynchronize(void *stream) {
  return refuseWait(stream, "cuStreamSynchronize");
}
CUresult cuStreamQuery(void *stream) {
  return refuseWait(stream, "cuStreamQuery");
}
CUresult cuStreamWaitEvent(void *stream, void *event, unsigned) {
  return event ? wait(stream, *static_cast<Event *>(event)) : kInvalidHandle;
}
CUresult cuLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
  return push(stream, NodeType::Host, [=] {
    function(data);
    return kSuccess;
  });
}

//===----------------------------------------------------------------------===//
// Capture
//===----------------------------------------------------------------------===//

static bool isMode(int mode) {
  return mode >= static_cast<int>(CaptureMode::Global) &&
         mode <= static_cast<int>(CaptureMode::Relaxed);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  if (!mode || !isMode(*mode))
    return kInvalidValue;
  auto exchanged = static_cast<CaptureMode>(*mode);
  exchangeCaptureMode(exchanged);
  *mode = static_cast<int>(exchanged);
  return kSuccess;
}
CUresult cuStreamBeginCapture_v2(void *stream, int mode) {
  return isMode(mode) ? beginCapture(stream, static_cast<CaptureMode>(mode))
                      : kInvalidValue;
}
CUresult cuStreamBeginCapture(void *stream, int mode) {
  return cuStreamBeginCapture_v2(stream, mode);
}
CUresult cuStreamEndCapture(void *stream, void **result) {
  if (!result)
    return kInvalidValue;
  Graph *graph = nullptr;
  CUresult error = endCapture(stream, graph);
  *result = graph;
  return error;
}
CUresult cuStreamIsCapturing(void *stream, int *status) {
  if (!status)
    return kInvalidValue;
  CaptureInfo info;
  CUresult error = getCaptureInfo(stream, info);
  *status = static_cast<int>(info.status);
  return error;
}
CUresult cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *id,
                                   void **graph,
                                   GraphNode *const **dependencies,
                                   size_t *count) {
  if (!status)
    return kInvalidValue;
  CaptureInfo info;
  CUresult error = getCaptureInfo(stream, info);
  *status = static_cast<int>(info.status);
  if (info.status != CaptureStatus::Active)
    return error;
  if (id)
    *id = info.id;
  if (graph)
    *graph = info.graph;
  if (dependencies)
    *dependencies = info.dependencies->data();
  if (count)
    *count = info.dependencies->size();
  return error;
}
CUresult cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id,
                                   void **graph,
                                   GraphNode *const **dependencies,
                                   const void **edges, size_t *count) {
  // Null says that all edges are plain ones.
  if (edges)
    *edges = nullptr;
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies,
                                   count);
}
CUresult cuStreamGetCaptureInfo(void *stream, int *status, uint64_t *id) {
  return cuStreamGetCaptureInfo_v2(stream, status, id, nullptr, nullptr,
                                   nullptr);
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

CUresult cuEventCreate(void **result, unsigned) {
  if (!result)
    return kInvalidValue;
  *result = new Event;
  return kSuccess;
}
CUresult cuEventDestroy(void *event) {
  delete static_cast<Event *>(event);
  return kSuccess;
}
CUresult cuEventDestroy_v2(void *event) { return cuEventDestroy(event); }
CUresult cuEventRecord(void *event, void *stream) {
  return event ? record(*static_cast<Event *>(event), stream) : kInvalidHandle;
}
CUresult cuEventQuery(void *event) {
  return event ? refuseWait(*static_cast<Event *>(event), "cuEventQuery")
               : kInvalidHandle;
}
CUresult cuEventSynchronize(void *event) {
  return event ? refuseWait(*static_cast<Event *>(event), "cuEventSynchronize")
               : kInvalidHandle;
}
CUresult cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  for (void *event : {start, end})
    if (!event || !static_cast<Event *>(event)->isRecorded ||
        static_cast<Event *>(event)->capture)
      return fail(kInvalidHandle,
                  "expected events that were recorded, outside of a capture");
  *milliseconds = 0;
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

CUresult cuGraphDestroy(void *graph) {
  if (!graph)
    return kInvalidValue;
  delete static_cast<Graph *>(graph);
  return kSuccess;
}
CUresult cuGraphGetNodes(void *handle, void **nodes, size_t *count) {
  if (!handle || !count)
    return kInvalidValue;
  std::deque<GraphNode> &all = static_cast<Graph *>(handle)->nodes;
  if (!nodes) {
    *count = all.size();
    return kSuccess;
  }
  for (size_t i = 0; i < *count; ++i)
    nodes[i] = i < all.size() ? &all[i] : nullptr;
  *count = std::min(*count, all.size());
  return kSuccess;
}
CUresult cuGraphNodeGetType(void *node, int *type) {
  if (!node || !type)
    return kInvalidValue;
  *type = static_cast<int>(static_cast<GraphNode *>(node)->type);
  return kSuccess;
}
CUresult cuGraphInstantiateWithFlags(void **result, void *graph,
                                     uint64_t flags) {
  if (!result || !graph || flags > kInstantiateFlags)
    return kInvalidValue;
  if (flags & kDeviceLaunch)
    return fail(kNotSupported, "no graph is launched from a device here");
  *result = new Executable{
      std::make_shared<const Graph>(*static_cast<Graph *>(graph))};
  return kSuccess;
}
CUresult cuGraphInstantiate_v2(void **result, void *graph, void **failed,
                               char *log, size_t capacity) {
  if (failed)
    *failed = nullptr;
  if (log && capacity)
    *log = '\0';
  return cuGraphInstantiateWithFlags(result, graph, 0);
}
CUresult cuGraphInstantiate(void **result, void *graph, void **failed,
                            char *log, size_t capacity) {
  return cuGraphInstantiate_v2(result, graph, failed, log, capacity);
}
CUresult cuGraphUpload(void *executable, void *) {
  return executable ? kSuccess : kInvalidValue;
}
CUresult cuGraphLaunch(void *handle, void *stream) {
  if (!handle)
    return kInvalidValue;
  std::shared_ptr<const Graph> graph = static_cast<Executable *>(handle)->graph;
  return push(stream, NodeType::Graph, [graph] {
    for (const GraphNode &node : graph->nodes)
      if (CUresult error = node.work())
        return error;
    return CUresult(kSuccess);
  });
}
CUresult cuGraphExecDestroy(void *executable) {
  if (!executable)
    return kInvalidValue;
  delete static_cast<Executable *>(executable);
  return kSuccess;
}
}
