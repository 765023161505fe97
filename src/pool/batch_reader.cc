#include "pool/batch_reader.h"

#include <algorithm>
#include <map>
#include <set>

#include "pool/function_call.h"
#include "pool/prepared.h"
#include "proto/message.h"

namespace lokadb {

namespace {

// A Parse: text and parameter types, wherever they are kept.
struct ParsedText {
  std::string_view text;
  std::vector<std::uint32_t> types;
  std::uint64_t known_as = 0;

  // Those that the client has been told instead of saying them.
  void add_types(const std::vector<std::uint32_t>& told) {
    if (types.size() < told.size()) types.resize(told.size());
    for (std::size_t i = 0; i < told.size(); ++i)
      if (types[i] == 0) types[i] = told[i];
  }
};

std::optional<ParsedText> read_parse_body(Bytes body) {
  MessageReader reader(body);
  ParsedText out;
  out.text = reader.cstring();
  std::size_t count = reader.u16();
  for (std::size_t i = 0; i < count && reader.ok(); ++i) out.types.push_back(reader.u32());
  if (!reader.finished()) return std::nullopt;
  return out;
}

class Reader {
 public:
  Reader(const ClientStatements& statements, const UnnamedStatement& unnamed)
      : statements_(statements), unnamed_(unnamed) {}

  bool read(Bytes messages) {
    Bytes all = messages;
    while (auto head = peek_head(messages)) {
      at_ = all.size() - messages.size();
      if (head->body == kBadLength || messages.size() < kHeaderSize + head->body) return false;
      if (!read_message(head->type, messages.subspan(kHeaderSize, head->body))) return false;
      out.last = head->type;
      messages = messages.subspan(kHeaderSize + head->body);
    }
    add_parses_without_bind();
    return messages.empty();
  }

  ReadBatch out;

 private:
  bool read_message(char type, Bytes body) {
    switch (type) {
      case 'Q':
        return read_query(body);
      case 'P':
        return read_parse(body);
      case 'B':
        return read_bind(body);
      case 'D':
        return read_describe(body);
      case 'E':
        return read_execute(body);
      case 'C':
        return read_close(body);
      case 'F':
        out.statements.emplace_back().form = is_large_object_call(body) ? LOKADB_OTHER : LOKADB_FUNCTION_CALL;
        return true;
      default:
        return true;
    }
  }

  bool read_query(Bytes body) {
    MessageReader reader(body);
    out.ends.query = static_cast<std::uint32_t>(out.statements.size());
    BatchStatement& statement = out.statements.emplace_back();
    statement.form = LOKADB_SIMPLE;
    statement.message = at_;
    statement.text = reader.cstring();
    return reader.finished();
  }

  bool read_parse(Bytes body) {
    MessageReader reader(body);
    std::string_view name = reader.cstring();
    auto parsed = read_parse_body(reader.rest());
    if (!parsed) return false;
    if (name.empty()) {
      out.unnamed_parse = reader.rest();
      out.closes_unnamed = false;
    } else {
      out.changed_names.emplace_back(name);
    }
    forget_parse(std::string(name));
    closed_.erase(std::string(name));
    parses_[std::string(name)] = {std::move(*parsed), name, at_};
    return true;
  }

  // Of this batch, or known before it. nullptr: not known.
  const ParsedText* find(const std::string& name) {
    if (auto it = parses_.find(name); it != parses_.end()) {
      it->second.is_bound = true;
      return &it->second.text;
    }
    if (closed_.contains(name)) return nullptr;
    std::optional<ParsedText> earlier;
    if (!name.empty()) {
      if (const auto& known = statements_.look_up(name); known.statement) {
        earlier = read_parse_body(known.statement->body());
        if (earlier) earlier->known_as = known.statement->number();
        if (earlier && known.types) earlier->add_types(*known.types);
      }
    } else if (unnamed_.is_known) {
      earlier = read_parse_body(unnamed_.body);
      out.binds_earlier_unnamed = true;
    }
    if (!earlier) return nullptr;
    return &(earlier_[name] = std::move(*earlier));
  }

  bool read_bind(Bytes body) {
    MessageReader reader(body);
    std::string portal(reader.cstring());
    std::string_view name = reader.cstring();
    const ParsedText* parsed = find(std::string(name));
    BatchStatement& statement = out.statements.emplace_back();
    statement.name = name;
    statement.form = parsed != nullptr ? LOKADB_BIND : LOKADB_OTHER;
    statement.message = at_;
    if (parsed != nullptr) {
      statement.text = parsed->text;
      statement.known_as = parsed->known_as;
      if (auto it = parses_.find(std::string(name)); it != parses_.end()) statement.parse = it->second.at;
    }
    statement.has_named_portal = !portal.empty();
    statement.is_kept = true;  // until it is executed
    portals_[portal] = out.statements.size() - 1;
    ++out.bind_count;
    return read_parameters(reader, parsed, statement);
  }

  static bool read_parameters(MessageReader& reader, const ParsedText* parsed, BatchStatement& statement) {
    std::size_t format_count = reader.u16();
    Bytes formats = reader.take(2 * format_count);
    std::size_t count = reader.u16();
    if (!reader.ok() || (format_count > 1 && format_count != count)) return false;
    for (std::size_t i = 0; i < count; ++i) {
      BatchStatement::Parameter& p = statement.parameters.emplace_back();
      std::uint32_t size = reader.u32();
      p.is_null = size == 0xffffffffu;
      if (!p.is_null) p.value = as_text(reader.take(size));
      if (!reader.ok()) return false;
      if (format_count > 0) p.is_binary = load_u16(formats.data() + 2 * (format_count == 1 ? 0 : i)) != 0;
      if (parsed != nullptr && i < parsed->types.size()) p.declared_type = parsed->types[i];
    }
    return true;  // formats of the results follow; the server looks at them
  }

  bool read_describe(Bytes body) {
    MessageReader reader(body);
    bool is_portal = reader.u8() == 'P';
    std::string_view name = reader.cstring();
    if (!reader.finished()) return false;
    if (!is_portal) {
      // Described with the Bind that uses it, if there is one in this batch.
      described_.push_back(name);
      return true;
    }
    auto it = portals_.find(std::string(name));
    if (it == portals_.end())
      out.statements.emplace_back().form = LOKADB_OTHER;
    else
      out.statements[it->second].is_described = true;
    return true;
  }

  bool read_execute(Bytes body) {
    MessageReader reader(body);
    std::string portal(reader.cstring());
    std::uint32_t limit = reader.u32();
    if (!reader.finished()) return false;
    auto it = portals_.find(portal);
    if (it == portals_.end()) {  // goes on with a portal of an earlier batch
      out.ends.executed.push_back(static_cast<std::uint32_t>(out.statements.size()));
      out.statements.emplace_back().form = LOKADB_OTHER;
      return true;
    }
    auto number = static_cast<std::uint32_t>(it->second);
    if (!out.ends.executed.empty() && number < out.ends.executed.back()) return false;
    out.ends.executed.push_back(number);
    BatchStatement& statement = out.statements[number];
    statement.is_kept = number + 1 != out.statements.size() || (statement.is_executed && statement.is_kept);
    statement.is_executed = true;
    statement.row_limit = limit;
    return true;
  }

  bool read_close(Bytes body) {
    MessageReader reader(body);
    bool is_statement = reader.u8() == 'S';
    std::string name(reader.cstring());
    if (!reader.finished()) return false;
    if (is_statement && !name.empty()) out.changed_names.push_back(name);
    out.closes_unnamed |= is_statement && name.empty();
    if (!is_statement) return true;
    forget_parse(name);
    closed_.insert(std::move(name));
    return true;
  }

  // Its name is another's from here on, or nobody's.
  void forget_parse(const std::string& name) {
    auto it = parses_.find(name);
    if (it == parses_.end()) return;
    if (!it->second.is_bound) nameless_.push_back(std::move(it->second));
    parses_.erase(it);
  }

  void add_statement(std::uint32_t form, std::string_view name, const ParsedText& parsed, std::size_t parse) {
    BatchStatement& statement = out.statements.emplace_back();
    statement.form = form;
    statement.name = name;
    statement.text = parsed.text;
    statement.known_as = parsed.known_as;
    statement.parse = parse;
    statement.is_described = true;
  }

  void add_parses_without_bind() {
    for (const Parse& parse : nameless_) add_statement(LOKADB_PARSE, parse.name, parse.text, parse.at);
    for (auto& [name, parse] : parses_)
      if (!parse.is_bound) add_statement(LOKADB_PARSE, parse.name, parse.text, parse.at);
    for (std::string_view view : described_) {
      std::string name(view);
      if (parses_.contains(name) || earlier_.contains(name)) continue;  // a Bind uses it, or it has its Parse above
      if (const ParsedText* parsed = find(name))
        add_statement(LOKADB_PARSE, view, *parsed, BatchStatement::kEarlier);
      else
        out.statements.emplace_back().form = LOKADB_OTHER;
    }
  }

  struct Parse {
    ParsedText text;
    std::string_view name;
    std::size_t at = 0;
    bool is_bound = false;
  };
  const ClientStatements& statements_;
  const UnnamedStatement& unnamed_;
  std::map<std::string, Parse> parses_;
  std::vector<Parse> nameless_;  // that had no Bind
  std::map<std::string, ParsedText> earlier_;
  std::set<std::string> closed_;  // by this batch
  std::map<std::string, std::size_t> portals_;
  std::vector<std::string_view> described_;
  std::size_t at_ = 0;  // of the message that is read
};

}  // namespace

bool begins_batch(char type) { return std::string_view("QPBDECF").find(type) != std::string_view::npos; }

BatchEnd find_batch_end(Bytes in) {
  std::size_t at = 0;
  while (auto head = peek_head(in.subspan(at))) {
    const bool stands_alone = head->type == 'F' || head->type == 'Q';
    if (stands_alone && at > 0) return {at, 'H', true};
    if (head->body == kBadLength || in.size() - at < kHeaderSize + head->body) return {};
    at += kHeaderSize + head->body;
    if (stands_alone || head->type == 'S' || head->type == 'H') return {at, head->type};
    if (!begins_batch(head->type)) return {at, 'S'};  // not the order of the protocol: the server says so
  }
  return {};
}

BatchEnd find_last_execute(Bytes in) {
  BatchEnd end;
  std::size_t at = 0;
  while (auto head = peek_head(in.subspan(at))) {
    if (head->body == kBadLength || in.size() - at < kHeaderSize + head->body) break;
    at += kHeaderSize + head->body;
    if (head->type == 'E') end = {at, 'H', true};
  }
  return end;
}

std::optional<ReadBatch> read_batch(Bytes messages, const ClientStatements& statements,
                                    const UnnamedStatement& unnamed) {
  Reader reader(statements, unnamed);
  if (!reader.read(messages)) return std::nullopt;
  return std::move(reader.out);
}

}  // namespace lokadb
