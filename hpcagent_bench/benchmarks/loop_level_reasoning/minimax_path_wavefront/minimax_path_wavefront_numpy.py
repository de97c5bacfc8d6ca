"""The least height that must be climbed on a way from the upper or left rim to every point."""


def minimax_path_wavefront(height, LEN_2D):
    for i in range(1, LEN_2D):
        for j in range(1, LEN_2D):
            height[i, j] = max(height[i, j], min(height[i - 1, j], height[i, j - 1]))
