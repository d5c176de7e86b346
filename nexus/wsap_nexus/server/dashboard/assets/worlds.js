export async function worldsPage(context) { context.root.append('…'); }
export async function worldPage(context) { context.root.append('…'); }
