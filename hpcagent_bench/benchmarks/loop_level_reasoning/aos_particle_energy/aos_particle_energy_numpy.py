"""Kinetic energy and first momentum of particles stored one after the other: mass and three velocities."""


def aos_particle_energy(particle, energy, momentum, LEN_1D):
    for i in range(LEN_1D):
        mass = particle[4 * i]
        vx = particle[4 * i + 1]
        vy = particle[4 * i + 2]
        vz = particle[4 * i + 3]
        energy[i] = 0.5 * mass * (vx * vx + vy * vy + vz * vz)
        momentum[i] = mass * vx
