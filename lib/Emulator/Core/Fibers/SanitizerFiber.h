//===- SanitizerFiber.h - Stacks as the sanitizers see them -----*- C++ -*-===//
//
// Fibers have stacks of their own, of which a sanitizer must be told at each
// switch: AddressSanitizer where the next stack lies, ThreadSanitizer which
// fiber runs next. Without a sanitizer these functions are empty.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_FIBERS_SANITIZERFIBER_H
#define FTUNER_LIB_EMULATOR_CORE_FIBERS_SANITIZERFIBER_H

#include <cstddef>
#include <memory>

#if defined(FTUNER_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(FTUNER_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace ftuner::emulator {

#if defined(FTUNER_ADDRESS_SANITIZER)
/// `__asan_unpoison_memory_region`, a name that LLVM's headers define as a
/// macro of nothing where they see no sanitizer.
extern "C" void
unpoisonMemory(const volatile void *begin,
               size_t bytes) __asm__("__asan_unpoison_memory_region");
#endif

/// Stacks are about to be unmapped: what lies there next is no stack.
inline void forgetStacks([[maybe_unused]] const char *stacks,
                         [[maybe_unused]] size_t bytes) {
#if defined(FTUNER_ADDRESS_SANITIZER)
  unpoisonMemory(stacks, bytes);
#endif
}

/// A stack, of a fiber or of a thread, as the sanitizers know it. Whoever
/// switches says so twice: on the old stack, and then on the new one.
class SanitizerFiber {
public:
  /// A new fiber on a stack on which others may have run: frames that these
  /// left without a return still mark it.
  void create([[maybe_unused]] char *stack, [[maybe_unused]] size_t size) {
#if defined(FTUNER_ADDRESS_SANITIZER)
    unpoisonMemory(stack, size);
    base = stack;
    bytes = size;
    fakeStack = nullptr;
#endif
#if defined(FTUNER_THREAD_SANITIZER)
    owned.reset(__tsan_create_fiber(0));
    handle = owned.get();
#endif
  }

  /// The stack that runs now is a thread's.
  void takeThread() {
#if defined(FTUNER_THREAD_SANITIZER)
    handle = __tsan_get_current_fiber();
#endif
  }

  /// On this stack, before the switch to another. `isLast`: for ever.
  void leaveFor([[maybe_unused]] const SanitizerFiber &next,
                [[maybe_unused]] bool isLast = false) {
#if defined(FTUNER_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(isLast ? nullptr : &fakeStack, next.base,
                                   next.bytes);
#endif
#if defined(FTUNER_THREAD_SANITIZER)
    __tsan_switch_to_fiber(next.handle, 0);
#endif
  }

  /// On this stack, after the switch from another, whose place is noted: that
  /// of a thread's stack nobody else says.
  void enterFrom([[maybe_unused]] SanitizerFiber &last) {
#if defined(FTUNER_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(fakeStack, &last.base, &last.bytes);
#endif
  }

private:
#if defined(FTUNER_ADDRESS_SANITIZER)
  const void *base = nullptr;
  size_t bytes = 0;
  void *fakeStack = nullptr;
#endif
#if defined(FTUNER_THREAD_SANITIZER)
  struct Destroy {
    void operator()(void *fiber) const { __tsan_destroy_fiber(fiber); }
  };
  void *handle = nullptr;
  std::unique_ptr<void, Destroy> owned;
#endif
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_FIBERS_SANITIZERFIBER_H
