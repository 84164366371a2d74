//===- PtxInterpreter.cpp - Runs PTX for its addresses --------------------===//
#include "PtxInterpreter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>
#include <limits>
#include <tuple>

using namespace ftuner;

namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kNone = ~0u;
constexpr int64_t kMatrixRowBytes = 16;
using Lanes = std::array<uint64_t, kLanes>;

struct PtxOperand {
  enum Kind {
    Register,
    Immediate,
    Memory,
    Vector,
    Thread,
    Block,
    NumBlocks,
    Label
  };
  Kind kind = Immediate;
  /// Of registers, and of addresses that start at one.
  unsigned reg = kNone;
  /// Immediates, offsets of addresses, and targets of branches (blocks).
  int64_t value = 0;
  unsigned numElements = 0;
};

struct PtxInstruction {
  std::string opcode;
  /// The opcode's parts between dots.
  llvm::SmallVector<std::string, 6> parts;
  unsigned guard = kNone;
  bool isGuardNegated = false;
  llvm::SmallVector<PtxOperand, 5> operands;
  /// Bits of the last type in the opcode, and whether it is signed.
  unsigned bits = 32;
  bool isSigned = false;
  bool isFloat = false;

  bool has(llvm::StringRef part) const {
    return llvm::is_contained(parts, part);
  }
};

struct PtxBlock {
  std::vector<PtxInstruction> instructions;
  llvm::SmallVector<unsigned, 2> successors;
  /// Number in the reverse postorder.
  unsigned order = kNone;
};

template <typename... Args>
llvm::Error invalid(const char *format, const Args &...args) {
  return llvm::createStringError(format, args...);
}

uint64_t truncated(uint64_t value, unsigned bits) {
  return bits >= 64 ? value : value & ((uint64_t(1) << bits) - 1);
}

int64_t signExtended(uint64_t value, unsigned bits) {
  if (bits >= 64)
    return static_cast<int64_t>(value);
  uint64_t sign = uint64_t(1) << (bits - 1);
  value = truncated(value, bits);
  return static_cast<int64_t>((value ^ sign) - sign);
}

} // namespace

struct PtxInterpreter::Kernel {
  std::vector<PtxBlock> blocks;
  llvm::StringMap<unsigned> registers;
  llvm::StringMap<unsigned> labels;

  llvm::Error parse(llvm::StringRef text);
  llvm::Error parseInstruction(llvm::StringRef text);
  llvm::Expected<PtxOperand> parseOperand(llvm::StringRef text);
  unsigned registerOf(llvm::StringRef name) {
    return registers.try_emplace(name, registers.size()).first->second;
  }
  void link();
};

llvm::Expected<PtxOperand>
PtxInterpreter::Kernel::parseOperand(llvm::StringRef text) {
  text = text.trim();
  PtxOperand operand;
  if (text.consume_front("{")) {
    operand.kind = PtxOperand::Vector;
    llvm::SmallVector<llvm::StringRef> elements;
    text.split(elements, ',');
    operand.numElements = elements.size();
    return operand;
  }
  if (text.consume_front("[")) {
    operand.kind = PtxOperand::Memory;
    text.consume_back("]");
    auto [base, offset] = text.split('+');
    if (!offset.empty() && offset.getAsInteger(10, operand.value))
      return invalid("ptx: bad offset '%s'", text.str().c_str());
    if (base.starts_with("%"))
      operand.reg = registerOf(base);
    else if (size_t at = base.find("_param_"); at != llvm::StringRef::npos) {
      if (base.drop_front(at + 7).getAsInteger(10, operand.value))
        return invalid("ptx: bad parameter '%s'", text.str().c_str());
    } else {
      operand.value += sharedBase;
    }
    return operand;
  }
  if (text == "%tid.x") {
    operand.kind = PtxOperand::Thread;
  } else if (text == "%ctaid.x") {
    operand.kind = PtxOperand::Block;
  } else if (text == "%nctaid.x") {
    operand.kind = PtxOperand::NumBlocks;
  } else if (text.starts_with("%")) {
    operand.kind = PtxOperand::Register;
    operand.reg = registerOf(text);
  } else if (text.starts_with("$")) {
    operand.kind = PtxOperand::Label;
  } else if (text.starts_with("0f") || text.starts_with("0d")) {
    operand.value = 0;
  } else if (llvm::StringRef number = text;
             number.consume_back("U"), number.getAsInteger(0, operand.value)) {
    // The name of the shared memory.
    if (!text.contains("shared_memory"))
      return invalid("ptx: unknown operand '%s'", text.str().c_str());
    operand.value = sharedBase;
  }
  return operand;
}

llvm::Error PtxInterpreter::Kernel::parseInstruction(llvm::StringRef text) {
  PtxInstruction instruction;
  if (text.consume_front("@")) {
    instruction.isGuardNegated = text.consume_front("!");
    auto [guard, rest] = text.split(' ');
    instruction.guard = registerOf(guard.trim());
    text = rest.trim();
  }
  size_t space = text.find_first_of(" \t");
  instruction.opcode = text.substr(0, space).str();
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(instruction.opcode).split(parts, '.');
  for (llvm::StringRef part : parts) {
    instruction.parts.push_back(part.str());
    unsigned bits;
    if (part.size() > 1 && llvm::StringRef("bsuf").contains(part[0]) &&
        !part.drop_front().getAsInteger(10, bits)) {
      instruction.bits = bits;
      instruction.isSigned = part[0] == 's';
      instruction.isFloat |= part[0] == 'f';
    } else if (part == "pred") {
      instruction.bits = 1;
    }
  }
  llvm::StringRef rest =
      space == llvm::StringRef::npos ? "" : text.drop_front(space).trim();
  while (!rest.empty()) {
    size_t end = 0;
    for (int depth = 0; end < rest.size() && (rest[end] != ',' || depth > 0);
         ++end)
      depth += (rest[end] == '{') - (rest[end] == '}');
    llvm::StringRef operandText = rest.substr(0, end).trim();
    // Branches keep the label's name until blocks are linked.
    if (operandText.starts_with("$"))
      instruction.parts.push_back(operandText.str());
    llvm::Expected<PtxOperand> operand = parseOperand(operandText);
    if (!operand)
      return operand.takeError();
    instruction.operands.push_back(*operand);
    rest = rest.drop_front(std::min(end + 1, rest.size())).trim();
  }
  blocks.back().instructions.push_back(std::move(instruction));
  return llvm::Error::success();
}

llvm::Error PtxInterpreter::Kernel::parse(llvm::StringRef text) {
  bool isInside = false;
  blocks.emplace_back();
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  // Of an instruction that goes on in the next line.
  std::string begun;
  for (llvm::StringRef line : lines) {
    line = line.split("//").first.trim();
    if (!isInside) {
      isInside = line == "{";
      continue;
    }
    if (line == "}" && begun.empty())
      break;
    if (line.empty() || line.starts_with("."))
      continue;
    if (line.ends_with(":")) {
      blocks.emplace_back();
      labels[line.drop_back()] = blocks.size() - 1;
      continue;
    }
    begun += (begun.empty() ? "" : " ") + line.str();
    if (!line.ends_with(";"))
      continue;
    begun.pop_back();
    if (llvm::Error error = parseInstruction(begun))
      return error;
    begun.clear();
    llvm::StringRef opcode = blocks.back().instructions.back().opcode;
    if (opcode.starts_with("bra") || opcode == "ret")
      blocks.emplace_back();
  }
  if (!begun.empty())
    return invalid("ptx: expected ';' after '%s'", begun.c_str());
  link();
  return llvm::Error::success();
}

/// Resolves labels, and orders the blocks.
void PtxInterpreter::Kernel::link() {
  for (auto [index, block] : llvm::enumerate(blocks)) {
    bool fallsThrough = index + 1 < blocks.size();
    for (PtxInstruction &instruction : block.instructions) {
      if (instruction.opcode == "ret")
        fallsThrough = false;
      if (instruction.parts.front() != "bra")
        continue;
      instruction.operands.front().value = labels[instruction.parts.back()];
      block.successors.push_back(instruction.operands.front().value);
      fallsThrough &= instruction.guard != kNone;
    }
    if (fallsThrough)
      block.successors.push_back(index + 1);
  }
  // Depth first, without recursion.
  std::vector<unsigned> postorder;
  std::vector<bool> isSeen(blocks.size());
  std::vector<std::pair<unsigned, size_t>> path = {{0, 0}};
  isSeen[0] = true;
  while (!path.empty()) {
    auto &[block, next] = path.back();
    if (next == blocks[block].successors.size()) {
      postorder.push_back(block);
      path.pop_back();
      continue;
    }
    unsigned successor = blocks[block].successors[next++];
    if (!isSeen[successor]) {
      isSeen[successor] = true;
      path.push_back({successor, 0});
    }
  }
  for (auto [order, block] : llvm::enumerate(llvm::reverse(postorder)))
    blocks[block].order = order;
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

namespace {

/// A warp that runs.
struct PtxWarp {
  const PtxBlockOfLaunch &block;
  unsigned warp;
  std::vector<Lanes> registers;

  uint64_t read(const PtxOperand &operand, unsigned lane) const {
    switch (operand.kind) {
    case PtxOperand::Register:
      return registers[operand.reg][lane];
    case PtxOperand::Thread:
      return warp * kLanes + lane;
    case PtxOperand::Block:
      return block.number;
    case PtxOperand::NumBlocks:
      return block.numBlocks;
    default:
      return operand.value;
    }
  }
  int64_t address(const PtxOperand &operand, unsigned lane) const {
    return operand.value +
           (operand.reg == kNone
                ? 0
                : static_cast<int64_t>(registers[operand.reg][lane]));
  }
  llvm::Error compute(const PtxInstruction &instruction, unsigned lane);
};

} // namespace

static bool compare(llvm::StringRef comparison, uint64_t a, uint64_t b,
                    bool isSigned) {
  auto apply = [&](auto x, auto y) {
    if (comparison.starts_with("eq"))
      return x == y;
    if (comparison.starts_with("ne"))
      return x != y;
    if (comparison.starts_with("lt") || comparison.starts_with("lo"))
      return x < y;
    if (comparison.starts_with("le") || comparison.starts_with("ls"))
      return x <= y;
    if (comparison.starts_with("gt") || comparison.starts_with("hi"))
      return x > y;
    return x >= y;
  };
  return isSigned ? apply(static_cast<int64_t>(a), static_cast<int64_t>(b))
                  : apply(a, b);
}

llvm::Error PtxWarp::compute(const PtxInstruction &instruction, unsigned lane) {
  const auto &operands = instruction.operands;
  llvm::StringRef name = instruction.parts.front();
  unsigned bits = instruction.bits;
  auto get = [&](unsigned index) -> uint64_t {
    uint64_t value = read(operands[index], lane);
    return instruction.isSigned
               ? static_cast<uint64_t>(signExtended(value, bits))
               : truncated(value, bits);
  };
  auto asSigned = [&](unsigned index) {
    return static_cast<int64_t>(get(index));
  };
  bool isSigned = instruction.isSigned;
  uint64_t result = 0;
  unsigned resultBits = bits;
  if (name == "mov" || name == "cvta") {
    result = get(1);
  } else if (name == "cvt") {
    // cvt.TO.FROM: `bits` is of the source.
    result = get(1);
    llvm::StringRef to = instruction.parts[instruction.parts.size() - 2];
    to.drop_front().getAsInteger(10, resultBits);
  } else if (name == "add") {
    result = get(1) + get(2);
  } else if (name == "sub") {
    result = get(1) - get(2);
  } else if (name == "neg") {
    result = -get(1);
  } else if (name == "not") {
    result = ~get(1);
  } else if (name == "and") {
    result = get(1) & get(2);
  } else if (name == "or") {
    result = get(1) | get(2);
  } else if (name == "xor") {
    result = get(1) ^ get(2);
  } else if (name == "shl") {
    uint64_t count = truncated(read(operands[2], lane), 32);
    result = count >= bits ? 0 : get(1) << count;
  } else if (name == "shr") {
    uint64_t count = truncated(read(operands[2], lane), 32);
    count = std::min<uint64_t>(count, isSigned ? bits - 1 : 64);
    result = isSigned      ? static_cast<uint64_t>(asSigned(1) >> count)
             : count >= 64 ? 0
                           : get(1) >> count;
  } else if (name == "mul" || name == "mad") {
    if (instruction.has("hi"))
      result =
          isSigned
              ? static_cast<uint64_t>((static_cast<__int128>(asSigned(1)) *
                                       static_cast<__int128>(asSigned(2))) >>
                                      bits)
              : static_cast<uint64_t>(
                    (static_cast<unsigned __int128>(get(1)) *
                     static_cast<unsigned __int128>(get(2))) >>
                    bits);
    else
      result = get(1) * get(2);
    if (instruction.has("wide"))
      resultBits = 2 * bits;
    if (name == "mad")
      result += read(operands[3], lane);
  } else if (name == "div" || name == "rem") {
    if (get(2) == 0)
      return invalid("ptx: division by zero");
    bool isDivision = name == "div";
    result = isSigned
                 ? static_cast<uint64_t>(isDivision ? asSigned(1) / asSigned(2)
                                                    : asSigned(1) % asSigned(2))
             : isDivision ? get(1) / get(2)
                          : get(1) % get(2);
  } else if (name == "min" || name == "max") {
    bool isLess = isSigned ? asSigned(1) < asSigned(2) : get(1) < get(2);
    result = get(isLess == (name == "min") ? 1 : 2);
  } else if (name == "bfe") {
    uint64_t first = truncated(read(operands[2], lane), 8);
    uint64_t length = truncated(read(operands[3], lane), 8);
    if (isSigned)
      return invalid("ptx: signed bfe");
    result = first >= bits
                 ? 0
                 : truncated(get(1) >> first, static_cast<unsigned>(length));
  } else if (name == "prmt") {
    uint64_t bytes = get(1) | get(2) << 32;
    for (unsigned byte = 0; byte < 4; ++byte) {
      uint64_t selector = get(3) >> 4 * byte & 15;
      if (selector > 7)
        return invalid("ptx: prmt of signs");
      result |= (bytes >> 8 * selector & 255) << 8 * byte;
    }
  } else if (name == "setp") {
    if (operands.size() != 3)
      return invalid("ptx: unexpected form of setp");
    result = compare(instruction.parts[1], get(1), get(2), isSigned);
    resultBits = 1;
  } else if (name == "selp") {
    result = get(read(operands[3], lane) & 1 ? 1 : 2);
  } else {
    return invalid("ptx: unknown instruction '%s'", instruction.opcode.c_str());
  }
  registers[operands[0].reg][lane] = truncated(result, resultBits);
  return llvm::Error::success();
}

PtxInterpreter::PtxInterpreter(std::unique_ptr<Kernel> kernel)
    : kernel(std::move(kernel)) {}
PtxInterpreter::PtxInterpreter(PtxInterpreter &&) = default;
PtxInterpreter::~PtxInterpreter() = default;

llvm::Expected<PtxInterpreter> PtxInterpreter::parse(llvm::StringRef text) {
  auto kernel = std::make_unique<Kernel>();
  if (llvm::Error error = kernel->parse(text))
    return error;
  return PtxInterpreter(std::move(kernel));
}

llvm::Expected<std::vector<PtxPhase>>
PtxInterpreter::run(const PtxBlockOfLaunch &block, unsigned warp,
                    unsigned barriers) const {
  PtxWarp state{block, warp, {}};
  state.registers.resize(kernel->registers.size());
  // Position of each lane: block and instruction.
  std::array<std::pair<unsigned, size_t>, kLanes> at = {};
  // Branches backwards that each lane took: lanes wait for those of the trip
  // before.
  std::array<unsigned, kLanes> trips = {};
  std::vector<PtxPhase> phases(1);
  auto rank = [&](unsigned lane) {
    return std::tuple(trips[lane], kernel->blocks[at[lane].first].order,
                      at[lane].second);
  };
  while (phases.size() <= barriers) {
    unsigned first = 0;
    for (unsigned lane = 1; lane < kLanes; ++lane)
      if (rank(lane) < rank(first))
        first = lane;
    const auto firstRank = rank(first);
    auto [blockIndex, index] = at[first];
    const PtxBlock &code = kernel->blocks[blockIndex];
    if (index == code.instructions.size()) {
      // A loop may begin right behind its latch.
      bool isBack = kernel->blocks[blockIndex + 1].order <= code.order;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        if (rank(lane) == firstRank) {
          trips[lane] += isBack;
          at[lane] = {blockIndex + 1, 0};
        }
      continue;
    }
    const PtxInstruction &instruction = code.instructions[index];
    llvm::StringRef name = instruction.parts.front();
    if (name == "ret")
      break;

    PtxEvent event;
    event.opcode = instruction.opcode;
    event.address.fill(-1);
    event.source.fill(-1);
    bool isCopy = llvm::StringRef(event.opcode).starts_with("cp.async.c") &&
                  instruction.operands.size() >= 3;
    bool isAccess = (name == "ld" || name == "st") && !instruction.has("param");
    unsigned numActive = 0, numPresent = 0;
    std::vector<unsigned> voters;
    bool agree = true;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (rank(lane) != firstRank)
        continue;
      ++numPresent;
      at[lane].second = index + 1;
      if (instruction.guard != kNone) {
        bool guard = state.registers[instruction.guard][lane] & 1;
        if (guard == instruction.isGuardNegated)
          continue;
      }
      ++numActive;
      const auto &operands = instruction.operands;
      if (name == "bra") {
        auto target = static_cast<unsigned>(operands.front().value);
        trips[lane] += kernel->blocks[target].order <= code.order;
        at[lane] = {target, 0};
      } else if (isCopy) {
        event.address[lane] = state.address(operands[0], lane);
        event.source[lane] = state.address(operands[1], lane);
        event.bytes = operands[2].value;
        event.isSized =
            operands.size() > 3 && operands[3].kind == PtxOperand::Register;
      } else if (name == "ldmatrix") {
        // Of each 8 × 8 matrix eight lanes give the rows.
        event.bytes = kMatrixRowBytes;
        if (lane < 8 * std::max(1u, operands[0].numElements))
          event.address[lane] = state.address(operands[1], lane);
      } else if (isAccess) {
        const PtxOperand &memory = operands[name == "ld" ? 1 : 0];
        const PtxOperand &data = operands[name == "ld" ? 0 : 1];
        event.address[lane] = state.address(memory, lane);
        event.bytes = instruction.bits / 8 * std::max(1u, data.numElements);
      } else if (name == "ld") {
        uint64_t value = block.parameters[operands[1].value];
        state.registers[operands[0].reg][lane] =
            instruction.isSigned
                ? static_cast<uint64_t>(signExtended(value, instruction.bits))
                : truncated(value, instruction.bits);
      } else if (name == "vote") {
        if (!instruction.has("all"))
          return invalid("ptx: unexpected form of vote");
        voters.push_back(lane);
        agree &= state.read(operands[1], lane) & 1;
      } else if (name == "bar" || name == "barrier" || name == "cp" ||
                 name == "mma" || instruction.isFloat ||
                 (name == "mov" && (operands[0].kind == PtxOperand::Vector ||
                                    operands[1].kind == PtxOperand::Vector))) {
        continue;
      } else if (llvm::Error error = state.compute(instruction, lane)) {
        return error;
      }
    }
    for (unsigned lane : voters)
      state.registers[instruction.operands[0].reg][lane] = agree;
    // A branch of which no lane is left is an instruction nevertheless.
    if (numActive > 0 || name == "bra")
      phases.back().push_back(std::move(event));
    if (name == "bar" || name == "barrier") {
      if (numPresent != kLanes)
        return invalid("ptx: a barrier that not all lanes reach");
      phases.emplace_back();
    }
  }
  return phases;
}
