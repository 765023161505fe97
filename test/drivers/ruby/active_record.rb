# ActiveRecord: migrations, models, its prepared statements, DDL under prepared statements, savepoints, threads and pool.
require_relative "tell"
require "active_record"

ActiveRecord::Base.establish_connection(adapter: "postgresql", host: WHERE[:host], port: WHERE[:port], database: WHERE[:dbname],
                                        username: WHERE[:user], password: WHERE[:password], pool: 10, statement_limit: 20,
                                        variables: { statement_timeout: "30s" })
ActiveRecord::Migration.verbose = false

class Ship < ActiveRecord::Base
  self.table_name = "ar_ships"
  has_many :sailors, foreign_key: :ship_id, dependent: :destroy
end

class Sailor < ActiveRecord::Base
  self.table_name = "ar_sailors"
  belongs_to :ship
end

class FirstStep < ActiveRecord::Migration[6.1]
  def change
    create_table(:ar_ships) { |t| t.string :name, null: false, index: { unique: true }; t.jsonb :data; t.timestamps default: "2024-01-01" }
    create_table(:ar_sailors) do |t|
      t.references :ship, foreign_key: { to_table: :ar_ships }
      t.text :name
      t.decimal :pay, precision: 12, scale: 2
      t.text :tags, array: true
      t.date :born
      t.binary :photo
      t.integer :lock_version, default: 0
    end
  end
end

class SecondStep < ActiveRecord::Migration[6.1]
  disable_ddl_transaction!

  def change
    add_column :ar_sailors, :rank, :integer, default: 3
    add_index :ar_sailors, :rank, algorithm: :concurrently
  end
end

def db
  ActiveRecord::Base.connection
end

def queries
  ship = Ship.create!(name: "first", data: { "k" => [1, nil] })
  10.times { |n| ship.sailors.create!(name: "s#{n}", pay: "#{n}.5", tags: ["a", "b,c"], born: Date.new(2000, 2, 29), photo: "\x00\xff".b) }
  8.times { |n| show("find #{n}", Sailor.find_by(name: "s#{n}").attributes.except("photo", "created_at")) }
  show("photo", Sailor.first.photo)
  show("included", Ship.includes(:sailors).map { |s| [s.name, s.sailors.size] })
  show("joined", Sailor.joins(:ship).where(ar_ships: { name: "first" }).where("pay > ?", 5).order(:id).pluck(:name))
  show("sums", Sailor.group(:ship_id).sum(:pay))
  show("inserted", Ship.insert_all([{ name: "i1" }, { name: "i2" }, { name: "i1" }]).length)
  show("upserted", Ship.upsert({ name: "i1", data: { "new" => 1 } }, unique_by: :name, returning: :name).rows)
  show("updated", Sailor.where("pay > 7").update_all("pay = pay + 1"))
  show("in portions", Sailor.find_each(batch_size: 3).map(&:id).size)
  show("exists", [Ship.exists?(name: "first"), Ship.exists?(name: "nobody")])
  40.times { |n| Ship.where(id: 1).where("#{n} = ?", n).pick(:name) } # more statements than statement_limit: DEALLOCATE
  show("limit", db.instance_variable_get(:@statements).length <= 20)
  attempt("duplicate") { Ship.create!(name: "first") }
  attempt("missing") { db.select_all("select * from missing_table") }
  attempt("usable") { Ship.count }
  stale = Sailor.find(1)
  Sailor.find(1).update!(name: "changed")
  attempt("stale") { stale.update!(name: "again") }
end

def transactions
  Ship.transaction do
    Ship.create!(name: "outer")
    Ship.transaction(requires_new: true) { Ship.create!(name: "inner"); raise ActiveRecord::Rollback }
    attempt("inner duplicate") { Ship.transaction(requires_new: true) { Ship.create!(name: "outer") } }
    show("inside", Ship.where(name: %w[outer inner]).pluck(:name))
  end
  attempt("serializable") { Ship.transaction(isolation: :serializable) { db.select_value("show transaction_isolation") } }
  attempt("rolled back") { Ship.transaction { Ship.create!(name: "gone"); raise ArgumentError } }
  show("locked", Ship.transaction { Ship.lock.find_by!(name: "outer").name })
  Ship.transaction { Ship.find_by!(name: "outer").with_lock { show("with lock", "held") } }
  show("names", Ship.order(:name).pluck(:name))
end

# Another connection changes the table under statements that this one has prepared.
def ddl_under_statements
  holder, other = Array.new(2) { PG.connect(**WHERE) }
  holder.exec("begin") # so that all the rest happens on one server of two
  3.times { Sailor.find_by(name: "s5") }
  other.exec("alter table ar_sailors add extra text default 'new'")
  attempt("after alter") { Sailor.find_by(name: "s5").name }
  attempt("again") { Sailor.find_by(name: "s5").name }
  attempt("in a transaction") { Sailor.transaction { Sailor.find_by(name: "s6").name } }
  other.exec("alter table ar_sailors drop extra")
  attempt("in a transaction after drop") { Sailor.transaction { Sailor.find_by(name: "s6").name } }
  attempt("outside") { Sailor.find_by(name: "s6").name }
  [holder, other].each(&:close)
end

def threads
  saw = Array.new(8) do |number|
    Thread.new do
      ActiveRecord::Base.connection_pool.with_connection do
        Array.new(5) do |turn|
          Ship.transaction do
            name = "thread #{number}.#{turn}"
            Ship.create!(name: name).sailors.create!(name: name)
            Sailor.find_by!(name: name).ship.name
          end
        end
      end
    end
  end.map(&:value)
  show("threads", saw)
end

[FirstStep, SecondStep].each { |step| step.new.migrate(:up) }
show("columns", Sailor.columns.map { |c| [c.name, c.sql_type] })
show("indexes", db.indexes("ar_sailors").map(&:name))
show("timeout", db.select_value("show statement_timeout"))
queries
transactions
ddl_under_statements
threads
attempt("canceled") { db.execute("set local statement_timeout = 100; select pg_sleep(20)") }
show("advisory lock", [db.get_advisory_lock(77), db.release_advisory_lock(77)]) if ARGV.include?("session")
db.reconnect!
show("reconnected", Ship.count)
SecondStep.new.migrate(:down)
Sailor.reset_column_information
show("columns", Sailor.column_names)
FirstStep.new.migrate(:down)
ActiveRecord::Base.connection_pool.disconnect!
show("end", "reached")
