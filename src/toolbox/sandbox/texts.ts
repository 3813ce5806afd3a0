import { escapeControls } from '../workspace/path-text.js'

/** The network access of a program in the sandbox, in words for a model. */
export function networkText(network: boolean | readonly string[]): string {
  if (network === true) return 'can use the network'
  if (network === false || network.length === 0) return 'has no network'
  return `can reach these hosts only, by HTTP and HTTPS: ${network.join(', ')}`
}

/** A line about hosts that were refused; empty if there were none. */
export function refusedNote(hosts: readonly string[]): string {
  return hosts.length === 0 ? '' : `The sandbox refused connections to: ${hosts.map(escapeControls).join(', ')}.`
}
