//===- DamagedText.h - Random damage for tests of readers -------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_DAMAGEDTEXT_H
#define FTUNER_TEST_UNIT_DAMAGEDTEXT_H

#include <random>
#include <string>

/// The text after one to three random edits: a byte replaced, up to 20 erased,
/// or a character of JSON's syntax inserted.
inline std::string damage(std::string text, std::mt19937 &random) {
  int edits = 1 + random() % 3;
  for (int edit = 0; edit < edits && !text.empty(); ++edit) {
    size_t position = random() % text.size();
    switch (random() % 3) {
    case 0:
      text[position] = static_cast<char>(random() % 256);
      break;
    case 1:
      text.erase(position, 1 + random() % 20);
      break;
    case 2:
      text.insert(position, 1, "{}[]\",:\\"[random() % 8]);
      break;
    }
  }
  return text;
}

#endif // FTUNER_TEST_UNIT_DAMAGEDTEXT_H
