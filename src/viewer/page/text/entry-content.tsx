import { resultForModel } from '#contracts/entry.js'
import type { ToolEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import type { ComponentChildren } from 'preact'
import { memberOf, objectsAt, textAt } from '../../reading/event-fields.js'
import { Markdown, OutsideLink } from './markdown.js'
import { Media, Words, plainText } from './formatted-text.js'

/** Content as the log has it: a text, or a list of parts. */
export function Content({ content, isProse = false }: { readonly content: unknown; readonly isProse?: boolean }) {
  if (typeof content === 'string') return <Said text={content} isProse={isProse} />
  return <>{objectsAt({ content }, 'content').map((part) => partShown(part, isProse))}</>
}

function Said({ text, isProse }: { readonly text: string; readonly isProse: boolean }) {
  return isProse ? <Words text={text} as={(part) => <Markdown text={part} />} /> : <Words text={text} />
}

/** One part of a message or a reply. Calls of tools have rows of their own. */
function partShown(part: JsonObject, isProse: boolean): ComponentChildren {
  const [data, mediaType] = [textAt(part, 'data'), textAt(part, 'mediaType')]
  const name = textAt(part, 'name') || undefined
  const type = textAt(part, 'type')
  switch (type) {
    case 'text':
      return (
        <>
          <Said text={textAt(part, 'text')} isProse={isProse} />
          <Citations part={part} />
        </>
      )
    case 'reasoning':
      return textAt(part, 'text') === '' ? null : (
        <details class="thought" open>
          <summary>Reasoning</summary>
          <Words text={textAt(part, 'text')} />
        </details>
      )
    case 'tool_call':
      return null
    case 'hosted':
      return (
        <div class="card">
          <header>
            <b>{plainText(name ?? 'hosted tool')}</b>
            <span class="tag">executed by the provider</span>
          </header>
          {['arguments', 'result'].map(
            (member) =>
              textAt(part, member) !== '' && (
                <div class="inside">
                  <Words text={textAt(part, member)} />
                </div>
              ),
          )}
        </div>
      )
    case 'image':
    case 'file':
    case 'audio':
      if (data !== '') return <Media mediaType={mediaType} data={data} name={name} />
      return (
        <p class="media file">
          {`${type}: `}
          {textAt(part, 'url') === '' ? (
            plainText(name ?? textAt(part, 'id'))
          ) : (
            <OutsideLink href={textAt(part, 'url')}>{plainText(textAt(part, 'url'))}</OutsideLink>
          )}
        </p>
      )
    default:
      return <p class="media file">{`${plainText(type)} of the provider`}</p>
  }
}

/** The sources that the provider names for a text. */
function Citations({ part }: { readonly part: JsonObject }) {
  const cited = objectsAt(part, 'annotations')
  if (cited.length === 0) return null
  return (
    <ol class="citations quiet" aria-label="Sources">
      {cited.map((citation) => {
        const [url, title] = [textAt(citation, 'url'), textAt(citation, 'title')]
        const label = plainText(title || url || textAt(citation, 'fileId') || 'a document')
        const quote = textAt(citation, 'quote')
        return (
          <li>
            {url === '' ? label : <OutsideLink href={url}>{label}</OutsideLink>}
            {quote !== '' && <q>{plainText(quote)}</q>}
          </li>
        )
      })}
    </ol>
  )
}

/** An entry of a transcript, with the calls of a reply in it. */
export function Entry({ entry }: { readonly entry: JsonObject }) {
  const role = textAt(entry, 'role')
  const notice = entry['notice'] === true ? ' (notice of the harness)' : ''
  const who = role === 'tool' ? `result of ${textAt(entry, 'name')}` : `${role}${notice}`
  return (
    <>
      <p class="who">
        <b>{plainText(who)}</b>
        <span class="quiet">{plainText(textAt(entry, 'id'))}</span>
        {entry['isError'] === true && <span class="tag bad">error</span>}
      </p>
      <Content
        content={
          role === 'tool'
            ? resultForModel(entry as unknown as ToolEntry, 'prefix')
            : memberOf(entry, role === 'assistant' ? 'parts' : 'content')
        }
      />
      {objectsAt(entry, 'parts')
        .filter((part) => part['type'] === 'tool_call')
        .map((part) => (
          <div class="asked">
            <span class="tag">calls</span> <b>{plainText(textAt(part, 'name'))}</b>
            <Words text={textAt(part, 'arguments')} />
          </div>
        ))}
    </>
  )
}
