// Lists that arrive in parts. Sequences are input ranges, read once, by one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace incipit {

// Values from a source that is asked for one at a time and returns nothing at the end. What the
// source throws, `next` throws.
template <class Value>
class Sequence {
 public:
  explicit Sequence(std::function<std::optional<Value>()> source) : source_(std::move(source)) {}

  std::optional<Value> next() {
    if (!source_) return std::nullopt;
    std::optional<Value> value = source_();
    if (!value) source_ = nullptr;
    return value;
  }

  class Iterator {
   public:
    using value_type = Value;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;

    explicit Iterator(Sequence* sequence) : sequence_(sequence) { ++*this; }

    const Value& operator*() const { return *value_; }

    const Value* operator->() const { return &*value_; }

    Iterator& operator++() {
      value_ = sequence_->next();
      return *this;
    }

    void operator++(int) { ++*this; }

    friend bool operator==(const Iterator& at, std::default_sentinel_t) { return !at.value_; }

   private:
    Sequence* sequence_ = nullptr;
    std::optional<Value> value_;
  };

  [[nodiscard]] Iterator begin() { return Iterator(this); }

  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  std::function<std::optional<Value>()> source_;
};

// One page of a list.
template <class Value>
struct Page {
  std::vector<Value> data;
  bool has_more = false;
  // Fetches the page behind this one, in the direction of the list; empty when this is the last.
  std::function<Page()> fetch_next;
};

// A list from its first page on. Iterating goes through all pages, fetching each when it is due;
// `page()` and `next_page()` are for those who show pages.
template <class Value>
class Paged {
 public:
  explicit Paged(Page<Value> first) : page_(std::move(first)) {}

  [[nodiscard]] const Page<Value>& page() const { return page_; }

  // Moves on to the next page; false, and nothing changed, when there is none.
  bool next_page() {
    if (!page_.fetch_next) return false;
    page_ = page_.fetch_next();
    return true;
  }

  // The rest of the list, from this page's first element on. Refers to this list; that of a
  // temporary, as in `for (… : client.models().all())`, keeps it.
  [[nodiscard]] Sequence<Value> all() & {
    return Sequence<Value>([this, at = std::size_t{0}]() mutable -> std::optional<Value> {
      while (at == page_.data.size()) {
        if (!next_page()) return std::nullopt;
        at = 0;
      }
      return page_.data[at++];
    });
  }

  [[nodiscard]] Sequence<Value> all() && {
    const auto list = std::make_shared<Paged>(std::move(*this));
    return Sequence<Value>([list, rest = list->all()]() mutable { return rest.next(); });
  }

 private:
  Page<Value> page_;
};

}  // namespace incipit
