export async function logPage(context) { context.root.append('…'); }
