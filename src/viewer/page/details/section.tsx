import type { ComponentChildren } from 'preact'

/** One part of the panel, with its name. */
export function Section({
  name,
  note,
  children,
}: {
  name: string
  note?: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <section class="section">
      <h3>
        {name}
        {note}
      </h3>
      {children}
    </section>
  )
}

/** Facts with their names; those that are not known are left out. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }) {
  const known = facts.filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false)
  return (
    <dl class="facts">
      {known.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  )
}
