import { messageOf } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import type { RunContext } from '../run-context.js'
import type { HostNotices } from '../effects.js'
import { extensionContext } from '../run-context.js'
import type { Notice, NoticeSource } from '../../extension/context.js'
import { sha256 } from '#util/platform/sha256.js'
import { untilAborted } from './change-view.js'

/** The notices that changed since the model last read them, or that it no longer sees. */
export async function hostNotices(context: RunContext): Promise<HostNotices | null> {
  const { hostNotices: known = {} } = context.state
  const changed: { readonly name: string; readonly digest: string; readonly text: string }[] = []
  for (const { extension, member } of context.extensions.notices) {
    for (const { name, text } of await noticesOf(context, extension, member)) {
      const digest = sha256(text).slice(0, 16)
      const key = `${extension}/${name}`
      if (known[key]?.digest !== digest) changed.push({ name: key, digest, text: rendered(name, text) })
    }
  }
  if (changed.length === 0) return null
  const text = changed.map((notice) => notice.text).join('\n\n')
  return {
    entry: { role: 'user', content: [{ type: 'text', text }], notice: true },
    notices: changed.map(({ name, digest }) => ({ name, digest })),
  }
}

function rendered(name: string, text: string): string {
  return `<host_notice name="${name}">\n${text}\n</host_notice>`
}

/** A source that fails is reported, and has no notices. */
async function noticesOf(context: RunContext, extension: string, source: NoticeSource): Promise<readonly Notice[]> {
  try {
    const given: unknown = await untilAborted(context, async () => source(extensionContext(context)))
    if (Array.isArray(given) && given.every(isNotice)) return given
    throw new TypeError('Expected a list of notices, `{ name, text }`; a name has letters, digits, `_` and `-`.')
  } catch (error) {
    context.signal.throwIfAborted()
    await context.hookFailed('notices', messageOf(error), extension)
    return []
  }
}

function isNotice(value: unknown): value is Notice {
  if (!isObject(value)) return false
  const { name, text } = value
  return typeof name === 'string' && /^[\w-]{1,64}$/.test(name) && typeof text === 'string'
}
