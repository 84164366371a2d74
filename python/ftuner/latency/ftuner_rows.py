def read(table, devices, host):
    raise NotImplementedError
