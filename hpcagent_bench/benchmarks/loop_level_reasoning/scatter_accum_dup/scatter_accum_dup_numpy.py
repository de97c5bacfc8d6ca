"""Every bin gains the elements whose index names it; about seventy name the same one."""


def scatter_accum_dup(bins, ip, src, LEN_1D, NBINS):
    for i in range(LEN_1D):
        bins[ip[i]] = bins[ip[i]] + src[i]
