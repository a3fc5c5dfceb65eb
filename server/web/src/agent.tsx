// The sign of an agent, which tells it apart from others at a glance. The server has the table.
import { useContext } from "preact/hooks"
import { Who } from "./ui"

export function AgentSign({ name }: { name: string }) {
  const sign = useContext(Who).agents?.[name] ?? { sign: name.replace(/[^\p{L}\p{N}]/gu, "").slice(0, 2).replace(/^./u, (c) => c.toUpperCase()), hue: 7 }
  return <span class={"sign agent" + sign.hue} title={name} aria-hidden="true">{sign.sign}</span>
}
