import { parseJson } from '../../../util/json.js'
import type { JsonObject } from '../../../util/json.js'
import { FileFailure } from '../../workspace/failure.js'
import { shownPath } from '../../workspace/path-text.js'
import { replaceFile, withTarget, writableStats } from '../../workspace/replace-file.js'
import { withResolved } from '../../workspace/safe-open.js'
import { withFile } from '../../workspace/workspace.js'
import type { Workspace } from '../../workspace/workspace.js'

const MAX_PROMPT_BYTES = 32 * 1024 * 1024

/** The prompts of a file: a JSON array of strings. @throws FileFailure, PathValidationError. */
export async function readPrompts(workspace: Workspace, path: string): Promise<readonly string[]> {
  const file = { policy: workspace.readPolicy, path }
  const text = await withFile(workspace, file, async ({ handle, stats }) => {
    if (stats.size > MAX_PROMPT_BYTES) throw invalid(`a file of prompts may have at most ${MAX_PROMPT_BYTES} bytes`)
    return handle.readFile('utf8')
  })
  const parsed = parseJson(text)
  const prompts = parsed.ok ? parsed.value : null
  if (Array.isArray(prompts) && prompts.length > 0 && prompts.every((prompt) => typeof prompt === 'string'))
    return prompts
  throw invalid('a file of prompts must contain a JSON array with at least one string')
}

/** Writes all results in one step; missing folders are created. @throws FileFailure, PathValidationError. */
export async function writeResults(
  workspace: Workspace,
  path: string,
  { results, signal }: { readonly results: JsonObject; readonly signal: AbortSignal },
): Promise<string> {
  const text = `${JSON.stringify(results, null, 2)}\n`
  return withResolved(
    () => workspace.writePolicy.resolve(path),
    async (resolved) => {
      await withTarget(workspace, { path: resolved, shown: shownPath(path), signal, create: true }, async (target) => {
        await replaceFile(target, await writableStats(target), { write: (file) => file.writeFile(text) })
      })
      return workspace.display(resolved)
    },
  )
}

function invalid(message: string): FileFailure {
  return new FileFailure('ValueError', message)
}
