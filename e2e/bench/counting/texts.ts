// Texts of several languages, code and JSON, from packages that are installed.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const LANGUAGES = ['de', 'es', 'fr', 'ru', 'tr', 'ja', 'ko', 'zh-cn'] as const
/** Characters of a text. */
const LENGTH = 40_000

export async function textsByKind(): Promise<ReadonlyMap<string, string>> {
  const folder = dirname(createRequire(import.meta.url).resolve('typescript/package.json'))
  const fileAt = async (path: string): Promise<string> => readFile(join(folder, path), 'utf8')
  const messages = async (language: string): Promise<readonly (readonly [string, string])[]> => {
    const file = await fileAt(`lib/${language}/diagnosticMessages.generated.json`)
    return Object.entries(JSON.parse(file) as Readonly<Record<string, string>>)
  }
  const texts = new Map<string, string>()
  const keys = (await messages('de')).map(([key]) => key.replace(/_/g, ' '))
  texts.set('English', keys.join('.\n'))
  for (const language of LANGUAGES)
    texts.set(language, (await messages(language)).map(([, message]) => message).join('\n'))
  texts.set('code', (await fileAt('lib/_tsc.js')).slice(100_000))
  texts.set('declarations', await fileAt('lib/lib.dom.d.ts'))
  texts.set('JSON', JSON.stringify(await messages('de')))
  return new Map([...texts].map(([kind, text]) => [kind, text.slice(0, LENGTH)]))
}
