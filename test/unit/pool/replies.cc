#include "pool/replies.h"

#include <boost/test/unit_test.hpp>
#include <deque>
#include <random>

namespace lokadb {
namespace {

std::unique_ptr<StatementUndo> undo_of(int number) {
  auto undo = std::make_unique<StatementUndo>();
  undo->client_name = std::to_string(number);
  return undo;
}

// What tells one entry from another in these tests.
int number_of(const Expected& e) { return e.undo ? std::stoi(e.undo->client_name) : -1; }

void push(ReplyQueue& queue, int number) { queue.push(Request::Parse, number % 2 == 0, undo_of(number)); }

bool is_same(const Expected& e, int number) { return number_of(e) == number && e.for_client == (number % 2 == 0); }

void check_same(ReplyQueue& queue, const std::deque<int>& model) {
  BOOST_REQUIRE(queue.size() == model.size());
  BOOST_REQUIRE(queue.empty() == model.empty());
  for (std::size_t i = 0; i < model.size(); ++i)
    if (!is_same(queue.at(i), model[i])) BOOST_FAIL("entry " << i << " is not " << model[i]);
  if (model.empty()) return;
  BOOST_REQUIRE(is_same(queue.front(), model.front()));
  BOOST_REQUIRE(is_same(queue.back(), model.back()));
  BOOST_REQUIRE(is_same(std::as_const(queue).back(), model.back()));
}

BOOST_AUTO_TEST_SUITE(pool_replies)

BOOST_AUTO_TEST_CASE(a_new_queue_is_empty) {
  ReplyQueue queue;
  BOOST_TEST(queue.empty());
  BOOST_TEST(queue.size() == 0u);
  queue.clear();
  BOOST_TEST(queue.empty());
}

BOOST_AUTO_TEST_CASE(requests_come_out_in_order) {
  ReplyQueue queue;
  queue.push(Request::Parse, true, undo_of(1));
  queue.push(Request::Bind, false);
  queue.push(Request::Sync, true);
  BOOST_CHECK(queue.front().request == Request::Parse);
  BOOST_TEST(queue.front().for_client);
  BOOST_TEST(number_of(queue.front()) == 1);
  queue.pop();
  BOOST_CHECK(queue.front().request == Request::Bind);
  BOOST_TEST(!queue.front().for_client);
  BOOST_TEST(queue.front().undo == nullptr);
  BOOST_CHECK(queue.back().request == Request::Sync);
  BOOST_TEST(queue.size() == 2u);
}

BOOST_AUTO_TEST_CASE(the_ring_grows_while_it_is_wrapped) {
  ReplyQueue queue;
  std::deque<int> model;
  int next = 0;
  // Each round leaves the head somewhere else before the ring must grow.
  for (std::size_t size : {16u, 32u, 64u, 128u}) {
    for (std::size_t i = 0; i < size / 2 + 3; ++i) {
      push(queue, next);
      queue.pop();
      ++next;
    }
    while (model.size() <= size) {
      push(queue, next);
      model.push_back(next++);
    }
    check_same(queue, model);
    while (!model.empty()) {
      BOOST_REQUIRE(number_of(queue.front()) == model.front());
      queue.pop();
      model.pop_front();
    }
  }
  check_same(queue, model);
}

BOOST_AUTO_TEST_CASE(an_entry_is_removed_from_any_place) {
  for (int head = 0; head < 16; ++head) {
    for (std::size_t place = 0; place < 10; ++place) {
      ReplyQueue queue;
      for (int i = 0; i < head; ++i) {
        push(queue, 99);
        queue.pop();
      }
      std::deque<int> model;
      for (int i = 0; i < 10; ++i) {
        push(queue, i);
        model.push_back(i);
      }
      queue.remove(place);
      model.erase(model.begin() + static_cast<long>(place));
      check_same(queue, model);
      push(queue, 50);
      model.push_back(50);
      check_same(queue, model);
    }
  }
}

BOOST_AUTO_TEST_CASE(any_mix_of_calls_does_what_a_deque_does) {
  std::mt19937 random(20240501);
  ReplyQueue queue;
  std::deque<int> model;
  for (int step = 0; step < 20000; ++step) {
    unsigned what = random() % 16;
    if (what < 8) {
      push(queue, step);
      model.push_back(step);
    } else if (what < 13 && !model.empty()) {
      queue.pop();
      model.pop_front();
    } else if (what < 15 && !model.empty()) {
      std::size_t place = random() % model.size();
      queue.remove(place);
      model.erase(model.begin() + static_cast<long>(place));
    } else if (random() % 200 == 0) {
      queue.clear();
      model.clear();
    }
    check_same(queue, model);
    if (model.size() > 300) {
      queue.clear();
      model.clear();
    }
  }
}

// A place in the ring is used again: nothing of its last entry may be left.
BOOST_AUTO_TEST_CASE(a_new_entry_knows_nothing_of_the_one_before) {
  ReplyQueue queue;
  for (int i = 0; i < 40; ++i) {
    queue.push(Request::Parse, false, undo_of(i));
    queue.back().name_is_taken = true;
    queue.pop();
    queue.push(Request::Query, true);
    BOOST_TEST(!queue.back().name_is_taken);
    BOOST_TEST(queue.back().undo == nullptr);
    queue.pop();
  }
}

// What an entry holds is let go at once, not when its place is used again.
BOOST_AUTO_TEST_CASE(statements_are_let_go_with_their_entry) {
  StatementPtr statement = intern_statement(as_bytes("select 'replies'"), TrackedNames({}));
  ReplyQueue queue;
  auto push_statement = [&] {
    auto undo = std::make_unique<StatementUndo>();
    undo->statement = statement;
    queue.push(Request::Parse, true, std::move(undo));
  };
  push_statement();
  queue.pop();
  BOOST_TEST(statement.use_count() == 1);
  for (int i = 0; i < 3; ++i) push_statement();
  queue.remove(1);
  BOOST_TEST(statement.use_count() == 3);
  queue.remove(1);
  BOOST_TEST(statement.use_count() == 2);
  for (int i = 0; i < 20; ++i) push_statement();
  queue.clear();
  BOOST_TEST(statement.use_count() == 1);
  BOOST_TEST(queue.empty());
}

BOOST_AUTO_TEST_CASE(what_is_answered_by_the_server_and_how) {
  struct {
    Request request;
    bool is_silent, ends_with_ready;
  } const table[] = {
      {Request::Query, false, true},      {Request::FunctionCall, false, true}, {Request::Parse, false, false},
      {Request::Bind, false, false},      {Request::Describe, false, false},    {Request::Execute, false, false},
      {Request::Close, false, false},     {Request::Sync, false, true},         {Request::CopyEnd, true, false},
      {Request::ParsedHere, true, false}, {Request::ClosedHere, true, false},
  };
  for (const auto& row : table) {
    BOOST_TEST(is_silent(row.request) == row.is_silent);
    BOOST_TEST(ends_with_ready(row.request) == row.ends_with_ready);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
