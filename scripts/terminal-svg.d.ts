export declare function animatedTerminal(
  frames: readonly { readonly lines: readonly string[]; readonly ms: number }[],
  size: { readonly columns: number; readonly rows: number },
): string
