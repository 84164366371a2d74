//===- WorkloadText.cpp - Workloads as text -------------------------------===//
#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace ftuner;

static llvm::StringRef roleName(OperandRole role) {
  switch (role) {
  case OperandRole::Lhs:
    return "lhs";
  case OperandRole::Rhs:
    return "rhs";
  case OperandRole::Input:
    return "input";
  case OperandRole::Init:
    return "init";
  case OperandRole::Extra:
    return "extra";
  case OperandRole::Output:
    return "output";
  }
  llvm_unreachable("all roles are handled");
}

/// The sum of a form's terms, each with its coefficient before what `position`
/// writes.
static void
writeTerms(llvm::raw_ostream &os, const AffineForm &form,
           llvm::StringRef separator,
           llvm::function_ref<void(const AffineForm::Term &)> position) {
  llvm::interleave(
      form.terms, os,
      [&](const AffineForm::Term &term) {
        if (term.coefficient != 1)
          os << term.coefficient << "*";
        position(term);
      },
      separator);
}

//===----------------------------------------------------------------------===//
// Fingerprints
//===----------------------------------------------------------------------===//

namespace {
class Fingerprint {
public:
  Fingerprint(const Workload &workload, FingerprintOf scope)
      : workload(workload), scope(scope) {}

  std::string write() {
    AxisSet reduce = workload.reduceAxes();
    for (auto [index, axis] : llvm::enumerate(workload.axes)) {
      os << (index > 0 ? "," : "") << (reduce.contains(index) ? "r" : "s");
      if (scope == FingerprintOf::Search)
        addSizes(axis);
      for (const Loop &loop : axis.loops)
        addRange(loop.range);
    }
    for (const Operand &operand : workload.operands)
      add(operand);
    for (const Inequality &inequality : workload.domain) {
      os << "|";
      add(inequality.form);
      for (const Inequality::OperandTerm &term : inequality.operands)
        os << "+" << term.coefficient << "*#" << term.operand;
    }
    for (const Computation &computation : workload.computations)
      if (scope == FingerprintOf::Kernels ||
          &computation != workload.epilogue())
        add(computation);
    return std::move(text);
  }

private:
  void addRange(const SizeRange &range) {
    os << range.min << "-" << range.max.value_or(-1) << "/" << range.step;
  }

  /// Adds the sizes of an axis. Symbols are numbered, since their names are not
  /// part of a fingerprint.
  void addSizes(const Axis &axis) {
    os << axis.name << ":";
    addRange(axis.range);
    os << "[";
    for (const SizeWeight &entry : axis.weights)
      os << entry.size << "=" << llvm::format("%.17e", entry.weight) << ",";
    os << "]" << axis.factor;
    for (const std::string &symbol : axis.symbols)
      os << "*" << symbols.try_emplace(symbol, symbols.size()).first->second;
  }

  void add(const AffineForm &form) {
    writeTerms(os, form, "+", [&](const AffineForm::Term &term) {
      os << term.axis;
      if (term.loop != AffineForm::Term::wholeAxis)
        os << "." << term.loop;
    });
    if (form.terms.empty() || form.constant != 0)
      os << "+" << form.constant;
  }

  void add(const Operand &operand) {
    os << "|" << roleName(operand.role) << ":" << nameOf(operand.elementType)
       << "(";
    llvm::interleave(
        llvm::seq<unsigned>(0, operand.rank()), os,
        [&](unsigned dim) { add(operand.position(dim)); }, ",");
    os << ")" << (operand.isPacked ? "packed" : "")
       << (operand.isPitched ? "padded" : "");
    if (operand.outside)
      os << "outside " << nameOf(*operand.outside);
    for (const Operand::Indirection &entry : operand.indirections)
      os << "[" << entry.dim << "by" << entry.indexOperand << "]";
  }

  /// Adds operations, for kernels by the units that execute them: logs of
  /// measurements use this text as a key. For searches the operations
  /// themselves are added, since program trees distinguish them.
  void add(llvm::ArrayRef<Operations> operations) {
    std::vector<Operations> apart;
    for (const Operations &entry : operations) {
      auto it = llvm::find_if(apart, [&](const Operations &known) {
        Operations one = entry;
        one.kind = known.kind;
        one.count = known.count;
        return scope == FingerprintOf::Kernels && known.kind != entry.kind &&
               known.unit() == entry.unit() && known == one;
      });
      if (it == apart.end())
        apart.push_back(entry);
      else
        it->count += entry.count;
    }
    for (const Operations &entry : apart) {
      os << ";" << nameOf(entry.unit());
      if (scope == FingerprintOf::Search)
        os << "." << static_cast<int>(entry.kind);
      os << ":" << nameOf(entry.operandType) << ":" << nameOf(entry.resultType)
         << "*" << llvm::format("%.17g", entry.count)
         << (entry.truncates ? "truncated" : "");
    }
  }

  void add(const Computation &computation) {
    os << "|" << computation.axes.mask() << "/" << computation.reduce.mask();
    for (const Read &read : computation.reads)
      os << (read.isComputation() ? "c" : "#") << read.number;
    add(computation.operations);
    if (const std::optional<State> &state = computation.state) {
      os << ";" << nameOf(state->merge);
      for (const Accumulator &accumulator : state->accumulators)
        os << ":" << nameOf(accumulator.type) << ":"
           << nameOf(accumulator.identity) << "/"
           << accumulator.invariantAxes.mask();
      add(state->mergeOperations);
      os << ";";
      add(state->finalize);
      if (state->correctedBy)
        os << "by" << *state->correctedBy;
    }
    if (scope == FingerprintOf::Kernels)
      for (unsigned number : computation.writes)
        os << ">" << number;
  }

  const Workload &workload;
  FingerprintOf scope;
  llvm::StringMap<unsigned> symbols;
  std::string text;
  llvm::raw_string_ostream os{text};
};
} // namespace

std::string Workload::fingerprint(FingerprintOf scope) const {
  return Fingerprint(*this, scope).write();
}

//===----------------------------------------------------------------------===//
// For readers
//===----------------------------------------------------------------------===//

namespace {
class NestWriter {
public:
  explicit NestWriter(const Workload &workload) : workload(workload) {}

  std::string write() {
    for (const Inequality &inequality : workload.domain)
      add(inequality);
    for (const Computation &computation : workload.computations)
      add(computation);
    return std::move(text);
  }

private:
  void add(AxisSet axes) {
    llvm::interleaveComma(axes.list(), os, [&](unsigned axis) {
      os << workload.axes[axis].name;
    });
  }

  /// "M", "2*P + R - 1", with the names of a fused axis's loops.
  void add(const AffineForm &form) {
    writeTerms(os, form, " + ", [&](const AffineForm::Term &term) {
      const Axis &axis = workload.axes[term.axis];
      os << (term.loop == AffineForm::Term::wholeAxis
                 ? axis.name
                 : axis.loops[term.loop].name);
    });
    if (form.terms.empty())
      os << form.constant;
    else if (form.constant != 0)
      os << (form.constant < 0 ? " - " : " + ") << std::abs(form.constant);
  }

  /// "lhs", "input3": roles of several operands have the operand's number.
  void addOperand(unsigned number) {
    OperandRole role = workload.operands[number].role;
    os << roleName(role);
    if (llvm::count_if(workload.operands, [&](const Operand &operand) {
          return operand.role == role;
        }) > 1)
      os << number;
  }

  void addAccess(unsigned number) {
    const Operand &operand = workload.operands[number];
    addOperand(number);
    if (operand.rank() == 0)
      return;
    os << "[";
    llvm::interleaveComma(
        llvm::seq<unsigned>(0, operand.rank()), os, [&](unsigned dim) {
          add(operand.position(dim));
          for (const Operand::Indirection &entry : operand.indirections)
            if (entry.dim == dim) {
              os << " + ";
              addOperand(entry.indexOperand);
            }
        });
    os << "]";
    if (operand.outside)
      os << " or " << nameOf(*operand.outside);
  }

  void add(const Inequality &inequality) {
    os << "where ";
    add(inequality.form);
    for (const Inequality::OperandTerm &term : inequality.operands) {
      os << (term.coefficient < 0 ? " - " : " + ");
      if (std::abs(term.coefficient) != 1)
        os << std::abs(term.coefficient) << "*";
      addAccess(term.operand);
    }
    os << " >= 0\n";
  }

  void add(const Computation &computation) {
    os << computation.name << "[";
    add(computation.space());
    os << "] = ";
    if (computation.state) {
      os << nameOf(computation.state->merge);
      if (!computation.reduce.empty()) {
        os << " over ";
        add(computation.reduce);
      }
      os << " of ";
    }
    llvm::interleaveComma(computation.reads, os, [&](const Read &read) {
      if (read.isComputation())
        os << workload.computations[read.number].name;
      else
        addAccess(read.number);
    });
    if (computation.state && computation.state->correctedBy)
      os << ", scaled by "
         << workload.computations[*computation.state->correctedBy].name;
    if (!computation.writes.empty()) {
      os << " -> ";
      llvm::interleaveComma(computation.writes, os,
                            [&](unsigned number) { addOperand(number); });
    }
    os << "\n";
  }

  const Workload &workload;
  std::string text;
  llvm::raw_string_ostream os{text};
};
} // namespace

std::string Workload::str() const { return NestWriter(*this).write(); }
