import { builtinEngine } from './builtin-engine.js'
import type { SearchEngine } from './engine.js'
import { findRipgrep, ripgrepEngine, RipgrepUnavailable } from './ripgrep.js'

/** The engine for an option: the named ripgrep, none (`false`), or the installed one, if any. */
export async function engineFor(ripgrep: string | false | undefined): Promise<SearchEngine> {
  if (ripgrep === false) return builtinEngine
  if (ripgrep !== undefined) return ripgrepEngine(ripgrep)
  const installed = await findRipgrep()
  return installed === undefined ? builtinEngine : withFallback(ripgrepEngine(installed), builtinEngine)
}

/** An installed program may still not run here, such as one that was built for another C library. */
function withFallback(engine: SearchEngine, fallback: SearchEngine): SearchEngine {
  return {
    ...engine,
    fileType: (name) => ifUnavailable(engine.fileType(name), () => fallback.fileType(name)),
    search: (request, onFile) => ifUnavailable(engine.search(request, onFile), () => fallback.search(request, onFile)),
  }
}

async function ifUnavailable<Result>(work: Promise<Result>, fallback: () => Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    if (error instanceof RipgrepUnavailable) return fallback()
    throw error
  }
}
