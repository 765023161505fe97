// Doubly linked list whose links live in the elements: moving between lists allocates nothing.
#pragma once

#include <cassert>
#include <cstddef>

namespace lokadb {

// A place in a list; an element has one (or more, told apart by Tag) as a base class.
template <class Tag = void>
struct ListHook {
  ListHook* prev = nullptr;
  ListHook* next = nullptr;

  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { assert(!is_linked()); }
  bool is_linked() const { return next != nullptr; }
};

// Does not own its elements. T derives from ListHook<Tag>. Not thread safe.
template <class T, class Tag = void>
class List {
 public:
  using Hook = ListHook<Tag>;

  List() { head_.prev = head_.next = &head_; }
  ~List() { head_.prev = head_.next = nullptr; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  bool empty() const { return head_.next == &head_; }
  std::size_t size() const { return size_; }
  T* front() { return empty() ? nullptr : static_cast<T*>(head_.next); }
  T* back() { return empty() ? nullptr : static_cast<T*>(head_.prev); }
  T* next(T* e) {
    Hook* h = static_cast<Hook*>(e)->next;
    return h == &head_ ? nullptr : static_cast<T*>(h);
  }

  void push_front(T* e) { insert(static_cast<Hook*>(e), &head_, head_.next); }
  void push_back(T* e) { insert(static_cast<Hook*>(e), head_.prev, &head_); }

  void remove(T* e) {
    Hook* h = static_cast<Hook*>(e);
    assert(h->is_linked());
    h->prev->next = h->next;
    h->next->prev = h->prev;
    h->prev = h->next = nullptr;
    --size_;
  }

  T* pop_front() {
    T* e = front();
    if (e != nullptr) remove(e);
    return e;
  }

  // Calls fn on each element; fn may remove the element it is given.
  template <class Fn>
  void for_each(Fn&& fn) {
    for (Hook* h = head_.next; h != &head_;) {
      Hook* after = h->next;
      fn(static_cast<T*>(h));
      h = after;
    }
  }

 private:
  void insert(Hook* h, Hook* before, Hook* after) {
    assert(!h->is_linked());
    h->prev = before;
    h->next = after;
    before->next = h;
    after->prev = h;
    ++size_;
  }

  Hook head_;
  std::size_t size_ = 0;
};

}  // namespace lokadb
