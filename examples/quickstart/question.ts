/** The default question of the quickstart. */
export const QUESTION = `How much do we owe our customers for the storm that hit our carrier Borealis
in October 2026? Find the days of the storm and the refund policy that is in
force in notes/, find the orders in orders.jsonl that it applies to, and write
report.md: the number of orders, the refunds in all in cents, and the five
largest refunds with their order ids.`
