// What numbers are called, as in the terminal (render/words.go).

const number = new Intl.NumberFormat("en")
export const counted = (n: number, one: string, many = one + "s") => `${number.format(n)} ${n === 1 ? one : many}`

/** short is a number with three digits at most and a unit: 950, 1.2k, 200k, 3.4M, 1.0B. */
export function short(n: number): string {
  if (n < 1000) return String(n)
  let v = n / 1000, i = 0
  for (; v >= 999.5 && i < 3; i++) v /= 1000
  return v.toFixed(v >= 99.95 ? 0 : 1) + "kMBT"[i]
}

/** money is an amount in millionths of a US dollar: $0, $0.0012, $3.40. */
export function money(micro: number): string {
  if (micro === 0) return "$0"
  if (micro < 100) return "<$0.0001"
  return "$" + (micro / 1e6).toFixed(micro < 1e4 ? 4 : 2)
}

type Spent = { cost_micro_usd: number, unpriced_responses: number, recorded: number }
export const cost = (u: Spent) => u.cost_micro_usd === 0 && (u.unpriced_responses > 0 || u.recorded > 0) ? "cost unknown" : (u.unpriced_responses > 0 || u.recorded > 0 ? "at least " : "") + money(u.cost_micro_usd)

/** narrow is what something cost, where there is no room for words. */
export const narrow = (u: Spent) => cost(u).replace("at least ", "≥ ").replace("cost unknown", "?")
