# What the programs here share: where the server is (PG* in the environment), and a transcript on standard output.
require "pg"

$stdout.sync = true

WHERE = { host: ENV.fetch("PGHOST"), port: ENV.fetch("PGPORT").to_i, user: ENV.fetch("PGUSER"),
          password: ENV.fetch("PGPASSWORD"), dbname: ENV.fetch("PGDATABASE") }.freeze

def show(what, value)
  puts "#{what}: #{value.inspect}"
end

def state_of(error)
  while error
    return error.result.error_field(PG::Result::PG_DIAG_SQLSTATE) if error.respond_to?(:result) && error.result
    last = error
    error = error.cause
  end
  last.class.name
end

# Shows what the block gives, or the SQLSTATE of its error.
def attempt(what)
  show(what, yield)
rescue StandardError => e
  show(what, "error #{state_of(e)}")
end
