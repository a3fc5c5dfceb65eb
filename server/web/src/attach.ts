// What goes with a message besides its text: images and files that are pasted, dropped or chosen.
import type { Part } from "./turns"

export type Attached = { key: number, name: string, kind: "image" | "file" | "text", url?: string, part: Part }

const most = 10 << 20 // bytes of one attachment
const images = ["image/png", "image/jpeg", "image/gif", "image/webp"]
let made = 0

const base64 = (f: Blob) => new Promise<string>((done, fail) => {
  const r = new FileReader()
  r.onload = () => done((r.result as string).split(",")[1] ?? "")
  r.onerror = () => fail(r.error)
  r.readAsDataURL(f)
})

/** fenced is a text as a block of Markdown, whatever fences it has. */
const fenced = (name: string, text: string) => {
  const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((m) => m[0].length + 1)))
  return `${name}:\n${fence}\n${text.replace(/\n$/, "")}\n${fence}`
}

/** attached reads a file as a part of a message. It says what is wrong with one that cannot be. */
export async function attached(f: File): Promise<Attached> {
  if (f.size > most) throw new Error(`${f.name} has ${Math.ceil(f.size / (1 << 20))} MB; at most ${most >> 20} MB can be sent`)
  const key = ++made, name = f.name || "pasted"
  if (images.includes(f.type)) return { key, name, kind: "image", url: URL.createObjectURL(f), part: { type: "image", image: { source: { type: "base64", media_type: f.type, data: await base64(f) } } } }
  const text = f.type === "application/pdf" ? undefined : await f.text()
  if (text !== undefined && !text.includes("\0") && !text.includes("\ufffd")) return { key, name, kind: "text", part: { type: "text", text: { content: fenced(name, text) } } }
  return { key, name, kind: "file", part: { type: "file", file: { name, source: { type: "base64", media_type: f.type || "application/octet-stream", data: await base64(f) } } } }
}

export const release = (all: Attached[]) => all.forEach((a) => { if (a.url) URL.revokeObjectURL(a.url) })
