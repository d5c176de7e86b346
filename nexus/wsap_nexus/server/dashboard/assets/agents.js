export async function agentsPage(context) { context.root.append('…'); }
export async function agentPage(context) { context.root.append('…'); }
