# ActiveRecord's own work on the schema of Django's steps: ruby active_record.rb PORT DATABASE. One line for each thing.
require "active_record"

ActiveRecord::Base.establish_connection(adapter: "postgresql", host: "127.0.0.1", port: ARGV[0].to_i, database: ARGV[1],
                                        username: "shopper", variables: { "lokadb.tenant" => "1" })

class Bare < ActiveRecord::Base
  self.table_name = "shop_document"
end

class Document < ActiveRecord::Base
  self.table_name = "shop_document"
  self.primary_key = "id"
  has_many :comments, foreign_key: :document_id, dependent: :delete_all
end

class Comment < ActiveRecord::Base
  self.table_name = "shop_comment"
  self.primary_key = "id"
  belongs_to :document, foreign_key: :document_id
end

def show(what)
  puts "#{what}: #{yield.inspect}"
rescue StandardError => e
  puts "#{what}: #{e.cause.respond_to?(:result) ? e.cause.result.error_field(PG::Result::PG_DIAG_SQLSTATE) : e.class}"
end

show("key found in the catalog") { Bare.primary_key }
show("all") { Document.order(:id).limit(3).pluck(:title) }
d = nil
show("key comes back") { (d = Document.create!(organization_id: 1, title: "rails", price: 2)).id > 6 }
show("find") { Document.find(d.id).title }
show("update") { d.update!(title: "rails 2"); d.reload.title }
show("children") { d.comments.create!(organization_id: 1, text: "a"); d.comments.count }
show("includes") { Document.includes(:comments).where(title: "rails 2").first.comments.size }
show("insert_all") { Document.insert_all([{ organization_id: 1, title: "i1", price: 0 }, { organization_id: 1, title: "i1", price: 0 }]).length }
show("upsert on the organization and title") { Document.upsert({ organization_id: 1, title: "i1", price: 5 }, unique_by: :one_title).length }
show("lock") { Document.transaction { Document.lock.find_by!(title: "d0").title } }
show("destroy") { d.destroy; Document.exists?(d.id) }
