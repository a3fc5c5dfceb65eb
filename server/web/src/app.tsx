// The page of a Coppice server.
import { render } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { get, type Me, me, onSignedOut, prefix, Problem, signIn, signOut } from "./api"
import { Failed, go, Link, Notices, useAsked, useKeys, usePlace, Who } from "./ui"
import { Sessions } from "./sessions"
import { Conversation } from "./conversation"
import { CardView } from "./card"
import { Stats } from "./stats"
import { Images } from "./images"
import { New } from "./chat"
import { Questions } from "./dialogs"
import { undoLast } from "./actions"
import { useGone, useLive } from "./live"
import { themes, useTheme } from "./theme"

function SignIn({ onIn }: { onIn: () => void }) {
  const [error, fail] = useState<Error>()
  const box = useRef<HTMLInputElement>(null)
  useEffect(() => box.current?.focus(), [])
  const send = (e: Event) => {
    e.preventDefault()
    signIn({ token: box.current!.value.trim() }).then(onIn, fail)
  }
  return <main class="sign-in"><form onSubmit={send}>
    <h1>Coppice</h1>
    <label for="token">Your token</label>
    <input id="token" ref={box} type="password" autocomplete="current-password" required spellcheck={false} placeholder="cop_…" />
    <button class="main">Sign in</button>
    {error && <Failed error={error instanceof Problem && error.status === 401 ? new Error("This token is not valid.") : error} />}
    <p class="hint">The terminal in which <code>coppice serve</code> runs shows one, <code>coppice token add NAME</code> makes others, and <code>coppice web</code> signs you in.</p>
  </form></main>
}

const allKeys: Record<string, [string, string][]> = {
  Everywhere: [["↑ ↓ j k", "move"], ["PgUp PgDn", "move by a page"], ["g G", "first, last"], ["Enter", "open"], ["Esc", "back"], ["/", "search, or find"], ["u", "undo"], ["$", "usage"], ["?", "this help"]],
  "The list": [["Space", "unfold what came from it"], ["m Alt+click", "mark"], ["b", "by project, by day"], ["e", "with empty ones"]],
  "A conversation": [[".", "what can be done"], ["t", "tree"], ["x", "context"], ["w", "picture"], ["i", "images"], ["c", "chat"], ["r", "copy the command that resumes it"], ["f", "fork"], ["o", "export"], ["X", "redact"], ["y", "copy a link"], ["R", "rename"], ["T", "tag"], ["s", "pin"], ["Y", "copy as Markdown"], ["v", "rate"], ["Del #", "trash"]],
  "Its transcript": [["p P", "next, previous prompt"], ["e E", "error"], ["d D", "edit"], ["m M", "compaction"], ["n N", "hit"], ["] [", "other branches"], ["Space", "unfold"], ["z Z", "unfold tools, thinking"], ["l", "outline"]],
  "Its tree": [["b", "branch here"], ["l", "label"], ["Space", "mark"], ["=", "compare with the mark"], ["z", "unfold"], ["+ - 0", "zoom the drawing"]],
  "A call that waits": [["y", "allow"], ["a", "always: see the rules"], ["n", "deny, with a reason"], ["Esc", "stop the turn, in the box"]],
}

function Help({ onClose }: { onClose: () => void }) {
  const box = useRef<HTMLDialogElement>(null)
  useEffect(() => box.current!.showModal(), [])
  return <dialog ref={box} class="keys" onClose={onClose} aria-labelledby="keys"><h2 id="keys" tabIndex={-1} autofocus>Keys</h2>
    <div>{Object.entries(allKeys).map(([where, keys]) => <section><h3>{where}</h3><dl>{keys.map(([key, what]) => <><dt>{key.split(" ").map((k) => <><kbd>{k}</kbd> </>)}</dt><dd>{what}</dd></>)}</dl></section>)}</div>
    <form method="dialog"><button>Close</button></form></dialog>
}

/** Nothing is there while no conversation is chosen. If there is none, the list says what to do. */
function Nothing() {
  const found = useAsked((signal) => get<{ sessions: unknown[] }>("/v1/sessions", { limit: 1 }, signal), [])
  useLive(undefined, true, async () => found.again())
  return found.value?.sessions.length ? <p class="empty">Choose a conversation.</p> : null
}

/** Gone says that the server does not answer, until it does. */
const Gone = () => useGone() ? <p class="gone" role="alert">The server does not answer. Trying again… What you see is what it said last.</p> : null

function Shell({ who }: { who: Me }) {
  const { parts, query } = usePlace()
  const [help, setHelp] = useState(false)
  const [theme, turnTheme] = useTheme()
  const [selected, show] = useState("")
  const soon = useRef<ReturnType<typeof setTimeout>>(undefined)
  const select = (id: string) => { clearTimeout(soon.current); soon.current = setTimeout(() => show(id), 80) } // keys come fast
  useKeys({ "?": () => setHelp(true), $: () => go("/stats"), u: undoLast, c: () => go("/new"), Escape: () => { if (parts.length) go("/") }, "/": () => document.querySelector<HTMLInputElement>("#search")?.focus() })
  const [room, id] = parts
  let view
  switch (room) {
    case "s": view = <Conversation key={id} id={id} rest={parts.slice(2)} query={query} />; break
    case "stats": view = <Stats />; break
    case "images": view = <Images />; break
    case "new": view = <New />; break
    default: view = selected ? <CardView id={selected} /> : <Nothing />
  }
  const leave = () => signOut().finally(() => location.assign(prefix + "/"))
  return <Who.Provider value={who}>
    <a class="skip" href="#view">Skip to the conversation</a>
    <header class="top"><Link to="/" class="brand">Coppice</Link>
      <nav aria-label="Views">
        {who.access !== "read" && <Link to="/new" title="Chat (c)">New chat</Link>}
        <Link to="/stats" title="Usage ($)" aria-current={room === "stats" ? "page" : undefined}>Usage</Link>
        <Link to="/images" aria-current={room === "images" ? "page" : undefined}>Images</Link>
      </nav>
      <span class="who">{who.access === "read" && <span class="soft" title="This token may read, and change nothing">read only</span>}
        <button class="plain" onClick={turnTheme} title={`Colours: ${themes[theme].words}`} aria-label={`Colours: ${themes[theme].words}`}>{themes[theme].sign}</button>
        {!who.open && <button onClick={leave} title={`Signed in as ${who.name}, with ${who.access} access`}>Sign out</button>}
        <button onClick={() => setHelp(true)} title="Keys (?)" aria-label="Keys">?</button></span>
    </header>
    <Gone />
    <main class={room ? "panes open" : "panes"}>
      <Sessions active={!room} open={room === "s" ? id : ""} onSelect={select} query={query.get("q") ?? ""} />
      <div id="view" tabIndex={-1}>{view}</div>
    </main>
    {help && <Help onClose={() => setHelp(false)} />}
  </Who.Provider>
}

function App() {
  const [who, set] = useState<Me | null>()
  const [error, fail] = useState<Error>()
  const look = () => me().then(set, (e) => e instanceof Problem && e.status === 401 ? set(null) : fail(e))
  useEffect(() => {
    onSignedOut(() => set(null))
    // coppice web opens the page with a code that works once. It is in the part of the address
    // that a browser does not send, and is taken out of the history.
    const code = new URLSearchParams(location.hash.slice(1)).get("sign-in")
    if (!code) { look(); return }
    history.replaceState(null, "", location.pathname + location.search)
    signIn({ code }).then(look, look)
  }, [])
  return <>
    {error ? <Failed error={error} /> : who === undefined ? null : who ? <Shell who={who} /> : <SignIn onIn={look} />}
    <Questions />
    <Notices />
  </>
}

render(<App />, document.getElementById("app")!)
