/** The provider's name in entries, native parts, `providerOptions` and events. */
export const PROVIDER = 'anthropic'
