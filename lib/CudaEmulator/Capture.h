//===- Capture.h - Streams and events, and their capture --------*- C++ -*-===//
//
// An operation on a stream runs at once, unless the stream is being captured:
// then it becomes a node of the capture's graph. Nodes are kept in the order in
// which they were captured. That is one in which they may run, whatever streams
// they came from, so a graph is launched by running them one after the other.
//
// A stream joins a capture by waiting for an event that was recorded in it. The
// nodes that the next operation of a stream depends on are known, so that a
// stream that was not joined to the first one again is found at the end.
//
// Source of the rules, and of the error of each breach: the descriptions of
// cuStreamBeginCapture, cuThreadExchangeStreamCaptureMode and of the errors 900
// to 908 in cuda.h of CUDA 13. They say that some calls are "potentially
// unsafe" but do not list them. Here these are: allocating and freeing outside
// of a stream's order, registering memory of the host, loading and unloading
// modules, and asking or waiting for an event.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_CUDAEMULATOR_CAPTURE_H
#define FTUNER_LIB_CUDAEMULATOR_CAPTURE_H

#include "Results.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace ftuner {

/// CUgraphNodeType
enum class NodeType {
  Kernel = 0,
  Copy = 1,
  Set = 2,
  Host = 3,
  Graph = 4,
  Allocate = 10,
  Free = 11
};

/// What an operation does once it runs.
using Work = std::function<CUresult()>;

struct GraphNode {
  NodeType type;
  Work work;
  std::vector<GraphNode *> dependencies;
};

/// A graph, and one that is instantiated.
struct Graph {
  /// In an order in which they may run.
  std::deque<GraphNode> nodes;
};

struct Capture;

/// A stream that was created, or a thread's default one.
struct Stream {
  /// Whether it waits for the legacy default stream, and that for it.
  bool isBlocking = true;
  std::shared_ptr<Capture> capture;
  /// What the next operation depends on, while it is being captured.
  std::vector<GraphNode *> dependencies;
};

struct Event {
  bool isRecorded = false;
  /// The capture that it was last recorded in, and its place there; null if it
  /// was recorded outside.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode *> dependencies;
};

/// CUstreamCaptureMode
enum class CaptureMode { Global = 0, ThreadLocal = 1, Relaxed = 2 };

/// CUstreamCaptureStatus
enum class CaptureStatus { None = 0, Active = 1, Invalidated = 2 };

/// The rest is set where the capture is active.
struct CaptureInfo {
  CaptureStatus status = CaptureStatus::None;
  uint64_t id = 0;
  Graph *graph = nullptr;
  /// Valid until the next operation on the stream.
  const std::vector<GraphNode *> *dependencies = nullptr;
};

// Streams are handles of the driver's API: 0 and 1 are the legacy default
// stream, 2 is the calling thread's. All functions may be called from any
// thread.

/// Makes what a node does when a graph is launched of what a call was given,
/// none of which it may refer to.
using Recorder = std::function<CUresult(Work &)>;

/// Runs an operation of a stream or, where the stream is being captured, makes
/// it a node of the graph: one that does what `recorder` gives or, without a
/// recorder, `work`.
CUresult push(void *stream, NodeType type, const Work &work,
              const Recorder &recorder = nullptr);

CUresult beginCapture(void *stream, CaptureMode mode);
/// The graph is the caller's; null if it fails.
CUresult endCapture(void *stream, Graph *&graph);
CUresult getCaptureInfo(void *stream, CaptureInfo &info);
/// Makes `mode` that of the calling thread, and gives the one before.
void exchangeCaptureMode(CaptureMode &mode);

CUresult record(Event &event, void *stream);
CUresult wait(void *stream, Event &event);

/// Each refuses what must not be done now, and invalidates the captures that
/// it breaks: a potentially unsafe call; waiting for a stream, for an event or
/// for the whole device; destroying a stream.
CUresult refuseUnsafe(const char *call);
CUresult refuseWait(void *stream, const char *call);
CUresult refuseWait(const Event &event, const char *call);
CUresult refuseWait(const char *call);
CUresult refuseDestroy(void *stream);

} // namespace ftuner

#endif // FTUNER_LIB_CUDAEMULATOR_CAPTURE_H
