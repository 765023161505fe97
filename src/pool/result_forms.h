// Whether the statements of a direct batch mean the same to the organization as to the client's own database: an
// organization's tables can be changed behind the proxy's back, and its server may be of another version. What a
// statement takes and gives is one number, its form (rows_mark.h). The organization tells it when it prepares the
// statement, the cloud in the packet of the checks; what the cloud has told is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"
#include "pool/rows_mark.h"

namespace lokadb {

struct BatchReplacement;
struct BatchStatement;

// What a client's database has told, by the body of a Parse (text and types). Any thread. What it forgets, or what is
// out of date, is asked again.
class KnownForms {
 public:
  RowsMark find(std::string_view body) const;  // kUnknownRows: not known
  void keep(std::string_view body, RowsMark form);

 private:
  using Map = std::unordered_map<std::string, RowsMark, TextHash, std::equal_to<>>;
  static constexpr std::size_t kLimit = 4u << 20;  // bytes of texts in each of the two
  mutable std::mutex mutex_;
  Map young_, old_;
  std::size_t young_bytes_ = 0;
};

// Of one batch. Worker of the session.
class ResultForms {
 public:
  // All live longer. replacements: what the client's own database is asked in place of statements that it cannot
  // describe.
  ResultForms(const std::vector<BatchStatement>& statements, const std::vector<BatchReplacement>& replacements,
              KnownForms& known);

  // The batch is sent to the organization, from its beginning.
  void begin();
  void unnamed_sent();                           // a Parse without a name
  void statement_used(std::uint64_t statement);  // a Bind; behind these, a Parse without Bind; 0: the unnamed one
  void answered(char type, Bytes body);          // what the client is to get; type of message
  // 0: of the next unnamed one; else as statement_used was told, before it or after it.
  void described(std::uint64_t statement, RowsMark form, RowsMark rows);
  // What the client was told of the rows of the statement that was used last; kUnknownRows: nothing.
  void client_expects(RowsMark rows);

  // When the answers so far prove that all statements have begun: bodies of Parse messages that the client's own
  // database has to describe.
  std::vector<std::string> to_ask();
  // What it has said, in this order. True: each statement has the same form there.
  bool settle(const std::vector<RowsMark>& told);

 private:
  struct Used {
    std::uint64_t statement;
    std::size_t unnamed;  // so many of them had been sent
    RowsMark expected = kUnknownRows;
  };
  struct Described {
    RowsMark form = kUnknownRows, rows = kUnknownRows;
  };
  struct Asked {
    std::string body;
    RowsMark form;
  };
  RowsMark form_of(std::size_t statement) const;
  std::string parse_body(std::size_t statement) const;
  Described described_as(const Used& used) const;

  const std::vector<BatchStatement>& statements_;
  const std::vector<BatchReplacement>& replacements_;
  KnownForms& known_;
  std::size_t unnamed_sent_ = 0;
  std::vector<Used> used_;
  std::vector<Described> unnamed_;
  std::vector<RowsMark> simple_;
  std::unordered_map<std::uint64_t, Described> named_;
  RowsMark of_query_ = kNoRows;  // of the statement of a Query that answers now
  bool has_failed_ = false;
  std::vector<Asked> asked_;
  bool is_known_ = true;     // all forms here
  bool is_expected_ = true;  // none of them is other than the client was told
};

}  // namespace lokadb
