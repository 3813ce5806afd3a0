/**
 * The name of a call that was made, as APIs accept it: a model may have called what never was a tool. `longest` is in
 * characters, 64 by default.
 */
export function calledName(name: string, longest = 64): string {
  const accepted = name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, longest)
  return accepted === '' ? 'unnamed' : accepted
}
