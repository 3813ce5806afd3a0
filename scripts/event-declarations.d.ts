/** The fields of each kind of event, by kind, as a readable TypeScript declaration. */
export function eventDeclarations(): Map<string, string>
