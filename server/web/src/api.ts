// What the page asks of the server: the operations below /v1, as every client does, and a few
// things of its own below /web.

/** Problem is an error of the server. */
export class Problem extends Error {
  constructor(readonly status: number, readonly kind: string, detail: string, readonly hint = "") {
    super(detail)
  }
}

// The secret of this page. The cookie that goes with it is out of the reach of scripts; neither is
// worth anything without the other.
const secretKey = "coppice-page"
let whenSignedOut = () => {}
export const onSignedOut = (f: () => void) => { whenSignedOut = f }

/** prefix is what all addresses begin with if a proxy in front has the page below a path. */
export const prefix = document.querySelector<HTMLMetaElement>("meta[name=coppice-root]")!.content.replace(/\/$/, "")

export type Query = Record<string, string | number | boolean | undefined>

export const path = (strings: TemplateStringsArray, ...parts: string[]) =>
  strings.reduce((all, s, i) => all + encodeURIComponent(parts[i - 1]) + s)

function request(method: string, url: string, query: Query | undefined, body: unknown, init: RequestInit): Promise<Response> {
  const at = new URL(prefix + url, location.origin)
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== "" && value !== false) at.searchParams.set(name, String(value))
  }
  const headers: Record<string, string> = { "Coppice-Page": localStorage.getItem(secretKey) ?? "none", ...(init.headers as Record<string, string>) }
  if (body !== undefined) headers["Content-Type"] = "application/json"
  return fetch(at, { ...init, method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin", redirect: "error" })
}

async function checked(r: Response): Promise<Response> {
  if (r.ok) return r
  const p = await r.json().catch(() => ({}))
  if (r.status === 401) whenSignedOut()
  throw new Problem(r.status, p.kind ?? "error", p.detail ?? `the server answered with ${r.status}`, p.hint)
}

async function call<T>(method: string, url: string, o: { query?: Query, body?: unknown, signal?: AbortSignal } = {}): Promise<T> {
  const r = await checked(await request(method, url, o.query, o.body, { signal: o.signal, headers: { Accept: "application/json" } }))
  return await r.json() as T
}

export const get = <T>(url: string, query?: Query, signal?: AbortSignal) => call<T>("GET", url, { query, signal })
export const post = <T>(url: string, body: unknown, signal?: AbortSignal) => call<T>("POST", url, { body, signal })
export const put = <T>(url: string, body: unknown) => call<T>("PUT", url, { body })
export const del = <T>(url: string, query?: Query) => call<T>("DELETE", url, { query })

/** bytes returns an answer that is not JSON. */
export async function bytes(url: string, query?: Query, signal?: AbortSignal): Promise<Blob> {
  return (await checked(await request("GET", url, query, undefined, { signal }))).blob()
}

/** Message is a piece of a streamed answer. */
export type Message = { event: string, id: string, data: any }

/** stream passes on what an operation sends, until it ends or is aborted. */
export async function stream(method: string, url: string, o: { query?: Query, body?: unknown, signal: AbortSignal, after?: string, opened?: () => void }, on: (m: Message) => void): Promise<void> {
  const headers: Record<string, string> = { Accept: "text/event-stream" }
  if (o.after) headers["Last-Event-ID"] = o.after
  const r = await checked(await request(method, url, o.query, o.body, { signal: o.signal, headers }))
  o.opened?.()
  const reader = r.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    rest += value
    let end
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const m: Message = { event: "", id: "", data: undefined }
      for (const line of rest.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) m.event = line.slice(7)
        else if (line.startsWith("id: ")) m.id = line.slice(4)
        else if (line.startsWith("data: ")) m.data = JSON.parse(line.slice(6))
      }
      rest = rest.slice(end + 2)
      if (m.event) on(m)
    }
  }
}

export type Me = { name: string, access: "read" | "write" | "admin", open: boolean, tools: boolean, version: string, filters: string[], list_filters: string[], agents?: Record<string, { sign: string, hue: number }> }

export const me = () => get<Me>("/web/me")

export async function signIn(given: { token?: string, code?: string }): Promise<void> {
  const { page } = await post<{ page: string }>("/web/sign-in", given)
  localStorage.setItem(secretKey, page)
}

export async function signOut(): Promise<void> {
  await post("/web/sign-out", {})
  localStorage.removeItem(secretKey)
}

// The shapes of answers, as far as the page uses them: /openapi.json has them all.

export type Session = {
  id: string, title: string, named: boolean, tags: string[], agent: string, project?: string, cwd?: string, created: string, updated: string
  messages: number, entries: number, branches: number, tokens?: number, models: Count[], tools: Count[], parent?: string, relation?: string
  subagents: number, forks: number, pinned: boolean, archived: boolean, problems: number, leaf: string, links: number, cost?: Usage
}
export type Count = { name: string, count: number }
export type Hit = {
  session: string, link?: string, title: string, agent: string, project?: string, updated: string, entry: string, kind: string, role?: string, tool?: string
  snippet: string, highlights: [number, number][], hits?: number
}
export type Found = { hits: Hit[], matches: number, bounded: boolean, did_you_mean?: string[], unknown?: { filter: string, value: string, did_you_mean?: string[], known?: string[] }[], not_filters?: string[] }
export type Branch = { entry: string, length: number }
export type Row = {
  index: number, entry: { id: string, time?: string, role?: string, note?: string, facts?: string[] }, kind: string, gist: string, label?: string
  others?: Branch[], subagents?: string[], cut?: boolean, html: string, draft?: boolean, queued?: boolean
  work?: { deeds?: Deed[], calls?: number, failed?: number }
}
/** Deed is what a call did, in words that can be counted. */
export type Deed = { verb: string, one: string, many: string, what?: string }
export type Rows = { session: string, leaf: string, total: number, from: number, rows: Row[], roots?: Branch[] }
export type MapRow = {
  index: number, entry: string, parent?: string, lanes: string, folded?: number, kind?: string, role?: string, gist?: string, label?: string
  live?: boolean, leaf?: boolean, children: number, time?: string, subagents?: string[]
}
export type MapRows = { session: string, leaf: string, total: number, from: number, rows: MapRow[] }
export type Usage = {
  key?: string, responses: number, input: number, cache_read: number, cache_write: number, output: number, cost_micro_usd: number, unpriced_responses: number, recorded: number
}
export type Step = { entry: string, tool: string, gist: string, outcome?: string, failed: boolean, state?: string }
export type Card = {
  session: Session, first?: string, last?: string, answer?: string, answer_entry?: string, step?: Step, todos: { text: string, state: string }[]
  open: Step[], unfinished: boolean, files: { path: string, changes: number, entry: string }[], spent: Usage, model?: string, window?: number
}
