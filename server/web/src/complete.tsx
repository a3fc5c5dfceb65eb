// The search box, in which filters are completed as one types.
import { useEffect, useRef, useState } from "preact/hooks"
import { get, path } from "./api"

/** splitLast returns what is before the word that is typed, and that word. */
function splitLast(text: string): [before: string, word: string] {
  const at = text.lastIndexOf(" ") + 1
  return [text.slice(0, at), text.slice(at)]
}

/** useValues keeps the values of filters, as far as they were asked for. */
export function useValues(filters: string[]) {
  const [n, heard] = useState(0)
  const kept = useRef(new Map<string, string[]>())
  return {
    n, filters,
    /** of returns the values of a filter, and asks for them if they are not there yet. */
    of(name: string): string[] {
      const known = kept.current.get(name)
      if (known || !filters.includes(name)) return known ?? []
      kept.current.set(name, [])
      get<{ values: string[] }>(path`/v1/suggest/filters/${name}`).then((r) => { kept.current.set(name, r.values); heard((n) => n + 1) }, () => {})
      return []
    },
    /** complete is a query without a filter at its end that has no value yet or, while one types, only the beginning of one. */
    complete(query: string, typing: boolean): string {
      const [before, word] = splitLast(query), [name, ...value] = word.split(":")
      if (!value.length || !filters.includes(name)) return query.trim()
      const known = kept.current.get(name) ?? [], is = value.join(":")
      return (is === "" || typing && known.length > 0 && !known.includes(is) ? before : query).trim()
    },
  }
}

const mostOffers = 8

type Props = { box: { current: HTMLInputElement | null }, query: string, type: (text: string) => void, values: ReturnType<typeof useValues>, onLeave: () => void }

export function Complete({ box, query, type, values, onLeave }: Props) {
  const [on, setOn] = useState(false)
  const [cur, move] = useState(0)
  const [before, word] = splitLast(query), [name, ...rest] = word.split(":")
  let offers: string[] = []
  if (rest.length) {
    const begun = rest.join(":").toLowerCase()
    offers = values.of(name).filter((v) => v.toLowerCase().startsWith(begun) && v !== rest.join(":")).map((v) => `${name}:${/\s/.test(v) ? `"${v}"` : v} `)
  } else if (word) offers = values.filters.filter((f) => f.startsWith(word)).map((f) => f + ":")
  offers = on ? offers.slice(0, mostOffers) : []
  useEffect(() => move(0), [word])
  const take = (offer: string) => { type(before + offer); box.current!.focus() }
  const keyed = (e: KeyboardEvent) => {
    const n = offers.length
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return
    if (e.key === "Tab" && !e.shiftKey && n) take(offers[cur])
    else if (e.key === "ArrowDown" && n) move((cur + 1) % n)
    else if (e.key === "ArrowUp" && n) move((cur + n - 1) % n)
    else if (e.key === "ArrowDown" || e.key === "Enter") onLeave()
    else return
    e.preventDefault()
  }
  return <div class="complete">
    <input id="search" ref={box} type="search" value={query} onInput={(e) => { setOn(true); type(e.currentTarget.value) }} onKeyDown={keyed} onBlur={() => setOn(false)}
      role="combobox" list={undefined} aria-expanded={offers.length > 0} aria-controls="offers" aria-autocomplete="list" aria-activedescendant={offers.length ? `offer-${cur}` : undefined}
      aria-label="Search everything that was said" placeholder="Search  (agent: project: tag: tool: since:)" autocomplete="off" spellcheck={false} />
    <ul id="offers" role="listbox" aria-label="Filters" hidden={!offers.length}>{offers.map((offer, i) =>
      <li id={`offer-${i}`} role="option" aria-selected={i === cur} onMouseDown={(e) => { e.preventDefault(); take(offer) }}>{offer.trim()}{i === cur && <kbd>Tab</kbd>}</li>)}</ul>
  </div>
}
