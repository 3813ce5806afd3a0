import { mkdirSync, realpathSync, statSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import { HarnessError, messageOf } from '#contracts/errors.js'
import { fileToolLimits, parseFileToolOptions } from './options.js'
import type { FileToolLimits, FileToolOptions } from './options.js'
import { escapeControls, expandHome, shownPath } from './path-text.js'
import { containedPath, isInside, PathPolicy } from './path-policy.js'
import { PROTECTED_FILES, Protection } from './protection.js'
import { descriptorsWork, openFile, withResolved } from './safe-open.js'
import type { Ground, OpenedFile } from './safe-open.js'

/** The harness's own folder in a root: never listed or searched, and not writable by the model. */
export const OWN_FOLDER = '.thinharness'

/** Roots that one set of tools remembers; the oldest is created again when needed. */
const MAX_ROOTS = 64

/** One root as the file tools see it. */
export interface Workspace extends Ground {
  readonly readPolicy: PathPolicy
  readonly writePolicy: PathPolicy
  /** Everything in the root, protected files included: for files of the tools themselves. */
  readonly rootPolicy: PathPolicy
  /** Absolute; created when it is first written to. */
  readonly outputDir: string
  readonly limits: FileToolLimits
  /** A path as the model sees it: relative to the root, with `/`; the root itself is `.`. */
  display(path: string): string
  /** True for the harness's own folder (absolute path) and everything in it. */
  isOwn(path: string): boolean
}

const cache = new WeakMap<FileToolOptions, Map<string, Workspace>>()

/**
 * The workspace of `options.root`, or of `contextRoot` if the options have none.
 * @throws HarnessError `invalid_options`; PathValidationError when an allow-list or the output folder leaves the root.
 */
export function workspaceOf(options: FileToolOptions, contextRoot: string): Workspace {
  const root = options.root ?? contextRoot
  const known = cache.get(options) ?? new Map<string, Workspace>()
  cache.set(options, known)
  const existing = known.get(root)
  if (existing !== undefined) return existing
  const workspace = createWorkspace(options, root)
  const oldest = known.size >= MAX_ROOTS ? known.keys().next().value : undefined
  if (oldest !== undefined) known.delete(oldest)
  known.set(root, workspace)
  return workspace
}

/**
 * A checked copy of the options, for tools that share a root's remembered state.
 * @throws HarnessError `invalid_options`; PathValidationError when an allow-list or the output folder leaves the root.
 */
export function sharedOptions(options: {
  readonly [Name in keyof FileToolOptions]: FileToolOptions[Name] | undefined
}): FileToolOptions {
  const shared = parseFileToolOptions(options)
  if (shared.root !== undefined) workspaceOf(shared, shared.root)
  return shared
}

/**
 * Resolves a path as the model gave it, opens the file for reading, and closes it afterwards.
 * @throws PathValidationError; FileFailure; an error of the system if it does not exist.
 */
export async function withFile<T>(
  workspace: Workspace,
  { policy, path }: { readonly policy: PathPolicy; readonly path: string },
  use: (file: OpenedFile) => Promise<T>,
): Promise<T> {
  return withResolved(
    () => policy.resolve(path),
    async (resolved) => {
      const file = await openFile(workspace, resolved, shownPath(path))
      try {
        return await use(file)
      } finally {
        await file.handle.close()
      }
    },
  )
}

function createWorkspace(options: FileToolOptions, rawRoot: string): Workspace {
  const limits = fileToolLimits(options)
  const root = createRoot(rawRoot)
  const own = join(root, OWN_FOLDER)
  return {
    root,
    descriptors: descriptorsWork(root),
    readPolicy: new PathPolicy(root, options.readPaths, {
      label: 'read paths',
      protection: { against: 'reading', files: protectedBy(options, 'read') },
    }),
    writePolicy: new PathPolicy(root, options.writePaths, {
      label: 'write paths',
      reserved: own,
      protection: { against: 'writing', files: protectedBy(options, 'write') },
    }),
    rootPolicy: new PathPolicy(root, undefined, { label: 'root' }),
    // A link in the place of the own folder prevents saving, and nothing else.
    outputDir: options.outputDir === undefined ? join(own, 'outputs') : containedPath(root, options.outputDir),
    limits,
    display: (path) => displayPath(root, path),
    isOwn: (path) => path === own || isInside(own, path),
  }
}

/** Those of the defaults are the same for all workspaces. */
const DEFAULT_PROTECTION = {
  read: new Protection(PROTECTED_FILES.read),
  write: new Protection(PROTECTED_FILES.write),
}

function protectedBy({ protect = {} }: FileToolOptions, list: 'read' | 'write'): Protection {
  const globs = protect === false ? [] : protect[list]
  return globs === undefined ? DEFAULT_PROTECTION[list] : new Protection(globs)
}

function createRoot(raw: string): string {
  try {
    const path = resolve(expandHome(raw))
    mkdirSync(path, { recursive: true })
    const root = realpathSync.native(path)
    if (statSync(root).isDirectory()) return root
  } catch (error) {
    throw new HarnessError('invalid_options', `Cannot use \`${raw}\` as \`root\`: ${messageOf(error)}`, {
      cause: error,
    })
  }
  throw new HarnessError('invalid_options', `Expected \`root\` to be a folder, got the file \`${raw}\`.`)
}

function displayPath(root: string, path: string): string {
  const below = root.endsWith(sep) ? root : root + sep
  const inside = path.startsWith(below) ? path.slice(below.length) : relative(root, path)
  return inside === '' ? '.' : escapeControls(sep === '/' ? inside : inside.replaceAll(sep, '/'))
}
