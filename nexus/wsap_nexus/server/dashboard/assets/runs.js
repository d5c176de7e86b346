export async function runsPage(context) { context.root.append('…'); }
export async function runPage(context) { context.root.append('…'); }
