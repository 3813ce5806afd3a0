import type { Sessions } from 'thinharness/session'

/** A message that a channel (Slack, Discord, Telegram, e-mail, …) sends to your webhook. */
export interface Incoming {
  readonly team: string
  readonly channel: string
  readonly user: string
  readonly id: string
  readonly text: string
}

/** A channel is a thread. Called again with the same `id`, it sends nothing twice. */
export async function onMessage(
  sessions: Sessions,
  { team, channel, user, id, text }: Incoming,
  post: (text: string, buttons?: readonly string[]) => Promise<void>,
): Promise<void> {
  const chat = await sessions.for({ resourceId: team }).open(channel)
  const { done } = await chat.send(text, { messageId: id, by: user })
  const { status, text: answer } = await done
  if (status === 'completed') await post(answer)
  for (const { toolName, arguments: json, callId } of chat.pending) await post(`May ${toolName} run? ${json}`, [callId])
}

/** Somebody has pressed a button, perhaps days later. */
export async function onButton(
  sessions: Sessions,
  { team, channel, user }: Pick<Incoming, 'team' | 'channel' | 'user'>,
  { callId, approved }: { readonly callId: string; readonly approved: boolean },
): Promise<void> {
  const chat = await sessions.for({ resourceId: team }).open(channel)
  await chat.answer([{ callId, approved }], { by: user })
  await chat.whenIdle()
}
