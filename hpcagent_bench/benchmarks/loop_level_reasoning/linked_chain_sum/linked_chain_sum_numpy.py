"""Every chain follows the links of a permutation for a fixed number of steps and sums what it visits."""


def linked_chain_sum(x, next_node, start, chain_sum, CHAINS, LEN_1D, STEPS):
    for chain in range(CHAINS):
        node = start[chain]
        s = 0.0
        for step in range(STEPS):
            s = s + x[node]
            node = next_node[node]
        chain_sum[chain] = s
