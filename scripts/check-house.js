// The house in numbers: how long the source is, how large the core is, which rooms know which, and that a name means one thing.
// A limit is raised only with a decision page. `node scripts/check-house.js --list` prints what is near a limit.
import { readFileSync, readdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import ts from 'typescript'

const LIMITS = {
  /** Lines that are neither blank nor comment, without the parts below. */
  codeLines: 72_400,
  files: 630,
  coreLines: 8600,
  loopLines: 4300,
  rooms: 18,
  floors: 10,
  arrows: 67,
  /** Floors inside `harness/` and `session/`. */
  floorsInside: 6,
  /** Places that define a function of one name. */
  sameFunction: 3,
  /** Types that `thinharness` itself exports. */
  rootTypes: 80,
}

/** Parts that stand on the seams of the house: each has a number of its own, and together they have one. */
const PARTS = [
  'models',
  'models/batched',
  'models/cache',
  'providers/embedding',
  'providers/google',
  'providers/hosted',
  'providers/transports',
  'toolbox/tool-search',
  'command',
  'command/import',
  'command/serve',
  'command/terminal',
  'adapters/ui/react',
  'viewer',
  'viewer/page',
  'viewer/page/details',
  'viewer/page/list',
  'viewer/page/text',
  'viewer/reading',
]
const PART_LINES = 1300
const ALL_PARTS_LINES = 16_000

/** Rooms that consist of rooms of their own. */
const SUITES = []
/** The vocabulary, `contracts/`, is read with it, and counted by itself. */
const CORE = /^src\/core\//

const files = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .map((name) => `src/${name.replaceAll('\\', '/')}`)
  .filter((name) => /\.tsx?$/.test(name))
  .sort()
const sources = new Map(files.map((file) => [file, sourceOf(file)]))
const problems = []
const facts = []

checkSize()
checkRooms()
checkNames()

const isListing = process.argv.includes('--list')
if (isListing) console.log(facts.join('\n'))
if (problems.length === 0) console.log(facts.filter((line) => !line.startsWith(' ')).join('; '))
else {
  console.error(problems.join('\n'))
  process.exitCode = 1
}

function sourceOf(file) {
  const text = readFileSync(file, 'utf8')
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  return { text, tree, lines: codeLines(text), imports: importsOf(file, tree) }
}

function sourceNamed(path) {
  const name = path.replace(/\.js$/, '.ts')
  return files.includes(`${name}x`) ? `${name}x` : name
}

function codeLines(text) {
  return text.split('\n').filter((line) => !/^\s*(\/\/.*|\/?\*.*)?$/.test(line)).length
}

/** The files of `src` that a file imports; imports of types count. */
function importsOf(file, tree) {
  const found = new Set()
  const visit = (node) => {
    const target =
      (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined
        ? node.moduleSpecifier.text
        : ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
          ? node.arguments[0]?.text
          : undefined
    if (target?.startsWith('.')) found.add(sourceNamed(posix.join(posix.dirname(file), target)))
    if (target?.startsWith('#')) found.add(sourceNamed(`src/${target.slice(1)}`))
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return [...found]
}

function checkSize() {
  const linesIn = (isIn) => files.filter(isIn).reduce((sum, file) => sum + sources.get(file).lines, 0)
  const house = files.filter((file) => partOf(file) === null)
  limit(
    'code lines',
    linesIn((file) => house.includes(file)),
    LIMITS.codeLines,
  )
  limit('files', house.length, LIMITS.files)
  for (const part of PARTS) {
    const count = linesIn((file) => partOf(file) === part)
    if (count > 0) limit(`code lines of ${part}`, count, PART_LINES)
  }
  limit(
    'code lines of all parts',
    linesIn((file) => partOf(file) !== null),
    ALL_PARTS_LINES,
  )
  limit(
    'code lines of the core',
    linesIn((file) => CORE.test(file)),
    LIMITS.coreLines,
  )
  limit(
    'code lines of core/loop',
    linesIn((file) => file.startsWith('src/core/loop/')),
    LIMITS.loopLines,
  )
}

/** The innermost part that a file belongs to; null for the house. */
function partOf(file) {
  const around = PARTS.filter((part) => file.startsWith(`src/${part}/`))
  return around.sort((left, right) => right.length - left.length)[0] ?? null
}

/** The house level: rooms, the arrows between them, and no two rooms that know each other, at any level. */
function checkRooms() {
  // Parts stand above the house: they are looked at for circles alone.
  floorsOf('the house with its parts', arrowsBetween(roomOf, files))
  const house = arrowsBetween(
    roomOf,
    files.filter((file) => partOf(file) === null),
  )
  limit('rooms', house.rooms.size, LIMITS.rooms)
  limit('arrows', house.arrows.size, LIMITS.arrows)
  limit('floors', floorsOf('the house', house), LIMITS.floors)
  facts.push(...[...house.arrows].sort().map((arrow) => `  ${arrow}`))
  for (const folder of foldersIn('src')) {
    const inside = files.filter((file) => file.startsWith(`${folder}/`))
    const roomInside = (file) => {
      if (!file.startsWith(`${folder}/`)) return null
      const [first = '', ...below] = file.slice(folder.length + 1).split('/')
      // An index.ts is the door of its folder; the files beside it are rooms of their own.
      return below.length > 0 || first === 'index.ts' ? first : first.replace(/\.ts$/, '')
    }
    const floors = floorsOf(folder, arrowsBetween(roomInside, inside))
    if (/^src\/(harness|session)$/.test(folder)) limit(`floors inside ${folder}`, floors, LIMITS.floorsInside)
  }
}

function roomOf(file) {
  const [, first = '', second] = file.split('/')
  if (second === undefined) return 'index'
  return SUITES.includes(first) ? `${first}/${second}` : first
}

function arrowsBetween(room, among) {
  const rooms = new Set(among.map(room))
  const arrows = new Set()
  for (const file of among)
    for (const target of sources.get(file).imports) {
      const [from, to] = [room(file), room(target)]
      if (to !== null && from !== to && sources.has(target)) arrows.add(`${from} → ${to}`)
    }
  return { rooms, arrows }
}

/** How many floors the rooms stand on; a circle of rooms is a problem. */
function floorsOf(place, { rooms, arrows }) {
  const below = new Map([...rooms].map((room) => [room, []]))
  for (const arrow of arrows) {
    const [from, to] = arrow.split(' → ')
    below.get(from).push(to)
  }
  const floors = new Map()
  const floorOf = (room, path) => {
    if (path.includes(room)) {
      problems.push(`${place}: ${[...path.slice(path.indexOf(room)), room].join(' → ')} is a circle.`)
      return 1
    }
    if (!floors.has(room))
      floors.set(room, 1 + Math.max(0, ...below.get(room).map((next) => floorOf(next, [...path, room]))))
    return floors.get(room)
  }
  return Math.max(0, ...[...rooms].map((room) => floorOf(room, [])))
}

function foldersIn(folder) {
  const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return below.flatMap(({ name }) => [join(folder, name), ...foldersIn(join(folder, name))])
}

/** One name, one meaning: exported types are unique, and a function's name is not defined over and over. */
function checkNames() {
  const types = new Map()
  const functions = new Map()
  const add = (map, name, file) => map.set(name, [...(map.get(name) ?? []), file])
  for (const [file, { tree }] of sources) {
    for (const node of tree.statements) if (isExportedType(node)) add(types, node.name.text, file)
    const visit = (node) => {
      if (ts.isFunctionDeclaration(node) && node.name !== undefined) add(functions, node.name.text, file)
      if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && isFunction(node.initializer))
        add(functions, node.name.text, file)
      ts.forEachChild(node, visit)
    }
    visit(tree)
  }
  for (const [name, places] of types)
    if (places.length > 1)
      problems.push(`Type \`${name}\` is exported by ${places.join(', ')}: a name means one thing.`)
  for (const [name, places] of functions)
    if (places.length > LIMITS.sameFunction)
      problems.push(`Function \`${name}\` is defined ${places.length} times: ${places.join(', ')}.`)
  const root = sources.get('src/index.ts').tree.statements.filter(ts.isExportDeclaration)
  const rootTypes = root.flatMap((node) =>
    ts.isNamedExports(node.exportClause)
      ? node.exportClause.elements.filter((each) => node.isTypeOnly || each.isTypeOnly)
      : [],
  )
  limit('types at the root', rootTypes.length, LIMITS.rootTypes)
}

function isExportedType(node) {
  const isType = ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isClassDeclaration(node)
  return isType && (node.modifiers ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
}

function isFunction(node) {
  return node !== undefined && (ts.isArrowFunction(node) || ts.isFunctionExpression(node))
}

function limit(what, count, most) {
  facts.push(`${what}: ${count} of ${most}`)
  if (count > most) problems.push(`${what}: ${count}, at most ${most}.`)
}
