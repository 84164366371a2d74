//===- Capture.cpp - Streams and events, and their capture ----------------===//
#include "Capture.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace ftuner {

struct Capture {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  CaptureMode mode;
  std::thread::id thread = std::this_thread::get_id();
  uint64_t id;
  /// The first is the one that the capture was begun on.
  std::vector<Stream *> streams;
  bool isInvalid = false;
};

namespace {

using Nodes = std::vector<GraphNode *>;

/// Guards all that follows, and what is captured of every stream and event.
std::mutex mutex;
/// Those that have begun and not ended.
std::vector<std::shared_ptr<Capture>> captures;
uint64_t lastId = 0;

thread_local CaptureMode threadMode = CaptureMode::Global;

/// Null for the legacy default stream.
Stream *streamOf(void *handle) {
  constexpr uintptr_t kLegacy = 1, kPerThread = 2;
  auto number = reinterpret_cast<uintptr_t>(handle);
  if (number <= kLegacy)
    return nullptr;
  if (number != kPerThread)
    return static_cast<Stream *>(handle);
  // Captures may know it when its thread is gone.
  static thread_local Stream *ofThread = new Stream;
  return ofThread;
}

CUresult refuse(const std::vector<Capture *> &broken, CUresult error,
                const std::string &words) {
  for (Capture *capture : broken)
    capture->isInvalid = true;
  return fail(error, words);
}

/// The captures whose streams the legacy default stream would wait for.
std::vector<Capture *> findBlocking() {
  std::vector<Capture *> found;
  for (const std::shared_ptr<Capture> &capture : captures)
    if (std::any_of(capture->streams.begin(), capture->streams.end(),
                    [](const Stream *stream) { return stream->isBlocking; }))
      found.push_back(capture.get());
  return found;
}

/// Refuses what uses the legacy default stream while a stream that it waits for
/// is being captured.
CUresult refuseLegacy() {
  std::vector<Capture *> broken = findBlocking();
  if (broken.empty())
    return kSuccess;
  return refuse(broken, kCaptureImplicit,
                "the legacy default stream waits for a stream that is being "
                "captured");
}

CUresult invalidated() {
  return fail(kCaptureInvalidated, "the capture of the stream was invalidated "
                                   "by an earlier call");
}

void unite(Nodes &nodes, const Nodes &others) {
  for (GraphNode *node : others)
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end())
      nodes.push_back(node);
}

/// Whether the first stream of a capture waits for all that the others did.
bool isJoined(const Capture &capture) {
  std::set<const GraphNode *> awaited;
  Nodes pending = capture.streams.front()->dependencies;
  while (!pending.empty()) {
    GraphNode *node = pending.back();
    pending.pop_back();
    if (awaited.insert(node).second)
      unite(pending, node->dependencies);
  }
  for (const Stream *stream : capture.streams)
    for (const GraphNode *node : stream->dependencies)
      if (!awaited.count(node))
        return false;
  return true;
}

void leave(Capture &capture) {
  for (Stream *stream : capture.streams) {
    stream->capture.reset();
    stream->dependencies.clear();
  }
}

} // namespace

CUresult push(void *handle, NodeType type, const Work &work,
              const Recorder &recorder) {
  {
    std::lock_guard lock(mutex);
    Stream *stream = captures.empty() ? nullptr : streamOf(handle);
    if (stream && stream->capture) {
      if (stream->capture->isInvalid)
        return invalidated();
      Work recorded = work;
      if (recorder)
        if (CUresult error = recorder(recorded))
          return error;
      std::deque<GraphNode> &nodes = stream->capture->graph->nodes;
      nodes.push_back({type, std::move(recorded), stream->dependencies});
      stream->dependencies = {&nodes.back()};
      return kSuccess;
    }
    if (!captures.empty() && !stream)
      if (CUresult error = refuseLegacy())
        return error;
  }
  return work();
}

CUresult beginCapture(void *handle, CaptureMode mode) {
  std::lock_guard lock(mutex);
  Stream *stream = streamOf(handle);
  if (!stream)
    return fail(kCaptureUnsupported,
                "the legacy default stream cannot be captured");
  if (stream->capture)
    return fail(kIllegalState, "the stream is being captured already");
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->id = ++lastId;
  capture->streams = {stream};
  stream->capture = capture;
  stream->dependencies.clear();
  captures.push_back(std::move(capture));
  return kSuccess;
}

CUresult endCapture(void *handle, Graph *&graph) {
  graph = nullptr;
  std::lock_guard lock(mutex);
  Stream *stream = streamOf(handle);
  if (!stream || !stream->capture)
    return fail(kIllegalState, "the stream is not being captured");
  std::shared_ptr<Capture> capture = stream->capture;
  if (stream != capture->streams.front())
    return refuse({capture.get()}, kCaptureUnmatched,
                  "the capture was begun on another stream");
  if (capture->mode != CaptureMode::Relaxed &&
      capture->thread != std::this_thread::get_id())
    return fail(kCaptureWrongThread, "the capture was begun by another thread");
  bool isWhole = isJoined(*capture);
  leave(*capture);
  captures.erase(std::find(captures.begin(), captures.end(), capture));
  if (capture->isInvalid)
    return invalidated();
  if (!isWhole)
    return fail(kCaptureUnjoined, "a stream joined the capture, but the first "
                                  "one does not wait for it");
  graph = capture->graph.release();
  return kSuccess;
}

CUresult getCaptureInfo(void *handle, CaptureInfo &info) {
  std::lock_guard lock(mutex);
  info = {};
  Stream *stream = streamOf(handle);
  if (!stream)
    return findBlocking().empty()
               ? kSuccess
               : fail(kCaptureImplicit, "the legacy default stream waits for a "
                                        "stream that is being captured");
  if (!stream->capture)
    return kSuccess;
  if (stream->capture->isInvalid) {
    info.status = CaptureStatus::Invalidated;
    return kSuccess;
  }
  info.status = CaptureStatus::Active;
  info.id = stream->capture->id;
  info.graph = stream->capture->graph.get();
  info.dependencies = &stream->dependencies;
  return kSuccess;
}

void exchangeCaptureMode(CaptureMode &mode) { std::swap(mode, threadMode); }

CUresult record(Event &event, void *handle) {
  std::lock_guard lock(mutex);
  Stream *stream = streamOf(handle);
  if (!stream)
    if (CUresult error = refuseLegacy())
      return error;
  if (stream && stream->capture && stream->capture->isInvalid)
    return invalidated();
  event.isRecorded = true;
  event.capture = stream ? stream->capture : nullptr;
  event.dependencies = event.capture ? stream->dependencies : Nodes();
  return kSuccess;
}

CUresult wait(void *handle, Event &event) {
  std::lock_guard lock(mutex);
  Stream *stream = streamOf(handle);
  if (!event.isRecorded)
    return kSuccess;
  Capture *own = stream ? stream->capture.get() : nullptr;
  if (own && own->isInvalid)
    return invalidated();
  Capture *other = event.capture.get();
  if (own && !other)
    return refuse({own}, kCaptureIsolation,
                  "a stream that is being captured cannot wait for an event "
                  "that was recorded outside of the capture");
  if (!stream && !other)
    return refuseLegacy();
  if (!other)
    return kSuccess;
  bool hasEnded = std::find(captures.begin(), captures.end(), event.capture) ==
                  captures.end();
  if (hasEnded) {
    const char *words = "the event was recorded in a capture that has ended";
    return own ? refuse({own}, kCaptureIsolation, words)
               : fail(kCaptureIsolation, words);
  }
  if (own && own != other)
    return refuse({own, other}, kCaptureMerge,
                  "the event was recorded in another capture");
  if (other->isInvalid)
    return invalidated();
  if (!stream)
    return refuse({other}, kCaptureUnsupported,
                  "the legacy default stream cannot join a capture");
  if (!own) {
    stream->capture = event.capture;
    other->streams.push_back(stream);
  }
  unite(stream->dependencies, event.dependencies);
  return kSuccess;
}

CUresult refuseUnsafe(const char *call) {
  std::lock_guard lock(mutex);
  std::vector<Capture *> broken;
  for (const std::shared_ptr<Capture> &capture : captures) {
    bool isOwn = capture->thread == std::this_thread::get_id();
    if (isOwn ? threadMode != CaptureMode::Relaxed &&
                    capture->mode != CaptureMode::Relaxed
              : threadMode == CaptureMode::Global &&
                    capture->mode == CaptureMode::Global)
      broken.push_back(capture.get());
  }
  if (broken.empty())
    return kSuccess;
  return refuse(broken, kCaptureUnsupported,
                std::string(call) + " while a stream is being captured");
}

CUresult refuseWait(void *handle, const char *call) {
  std::lock_guard lock(mutex);
  Stream *stream = streamOf(handle);
  if (!stream)
    return refuseLegacy();
  if (!stream->capture)
    return kSuccess;
  return refuse({stream->capture.get()}, kCaptureUnsupported,
                std::string(call) + " of a stream that is being captured");
}

CUresult refuseWait(const Event &event, const char *call) {
  {
    std::lock_guard lock(mutex);
    if (event.capture)
      return refuse({event.capture.get()}, kCapturedEvent,
                    std::string(call) + " of an event of a capture");
  }
  return refuseUnsafe(call);
}

CUresult refuseWait(const char *call) {
  std::lock_guard lock(mutex);
  if (captures.empty())
    return kSuccess;
  std::vector<Capture *> all;
  for (const std::shared_ptr<Capture> &capture : captures)
    all.push_back(capture.get());
  return refuse(all, kCaptureUnsupported,
                std::string(call) + " while a stream is being captured");
}

CUresult refuseDestroy(void *handle) {
  std::lock_guard lock(mutex);
  Stream *stream = streamOf(handle);
  if (!stream)
    return fail(kInvalidHandle, "the default stream cannot be destroyed");
  if (!stream->capture)
    return kSuccess;
  return refuse({stream->capture.get()}, kCaptureUnsupported,
                "cuStreamDestroy of a stream that is being captured");
}

} // namespace ftuner
