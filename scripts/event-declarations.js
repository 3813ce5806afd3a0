import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'

const SOURCE = 'src/core/state/events.ts'

/** The fields of each kind of event, by kind, as a readable TypeScript declaration. */
export function eventDeclarations() {
  const file = parsed(SOURCE)
  const kinds = new Map()
  for (const [name, durable] of [
    ['DurablePayloads', true],
    ['EphemeralPayloads', false],
  ]) {
    for (const member of interfaceIn(file, name).members) {
      const kind = member.name.text
      // A kind in both is documented as durable.
      if (!kinds.has(kind)) kinds.set(kind, declaration(kind, durable, membersOf(member.type, file)))
    }
  }
  return kinds
}

function declaration(kind, durable, members) {
  const name = kind.replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase())
  const fields = members.map((member) =>
    member
      .getFullText()
      .replace(/\breadonly /g, '')
      .replace(/^\n+/, ''),
  )
  return [`interface ${name} {`, `kind: '${kind}'`, `durable: ${durable}`, ...fields, '}'].join('\n')
}

/** The members of a type that is written out, or of the interface that it names, here or where it is imported from. */
function membersOf(type, file) {
  if (ts.isTypeLiteralNode(type)) return type.members
  if (ts.isTypeReferenceNode(type)) return namedMembers(type.typeName.text, file)
  throw new Error(`Expected the payload \`${type.getText()}\` in ${SOURCE} to be written out or to name an interface.`)
}

function namedMembers(name, file) {
  const here = interfaceIn(file, name)
  if (here !== undefined) return here.members
  for (const statement of file.statements.filter(ts.isImportDeclaration)) {
    const names = statement.importClause?.namedBindings?.elements?.map((element) => element.name.text) ?? []
    if (!names.includes(name)) continue
    const { text } = statement.moduleSpecifier
    const target = text.startsWith('#') ? join('src', text.slice(1)) : join(dirname(file.fileName), text)
    const path = target.replace(/\.js$/, '.ts')
    return namedMembers(name, parsed(path))
  }
  throw new Error(`Expected \`${name}\` to be an interface that ${file.fileName} declares or imports.`)
}

function interfaceIn(file, name) {
  return file.statements.find((statement) => ts.isInterfaceDeclaration(statement) && statement.name.text === name)
}

function parsed(path) {
  return ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true)
}
